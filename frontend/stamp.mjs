// Writes the hash of everything in this folder beside the built bundle. setup.py computes the same hash and builds
// only where the two differ; its list of skipped folders must stay equal to SKIP.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

const SKIP = new Set(['node_modules', 'dist', 'coverage', 'test-results', 'playwright-report']);
const walk = (dir, prefix = '') => readdirSync(dir, { withFileTypes: true }).flatMap((e) =>
  SKIP.has(e.name) ? []
    : e.isDirectory() ? walk(`${dir}/${e.name}`, `${prefix}${e.name}/`) : [`${prefix}${e.name}`]);

const hash = createHash('sha256');
for (const name of walk('.').toSorted()) {
  const text = readFileSync(name).toString('latin1').replaceAll('\r\n', '\n');
  hash.update(`${name}\0`).update(Buffer.from(text, 'latin1')).update('\0');
}
writeFileSync('../tb_tidy_plugin/plugin/static/.stamp', hash.digest('hex') + '\n');
