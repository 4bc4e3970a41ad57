// Fails when a file of the bundle is above its budget (gzip, level 9), or when the entry has lost its export.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const ENTRY_KB = 60;
const CHUNK_KB = 120;
const root = process.argv[2] ?? '../tb_tidy_plugin/plugin/static';
let bad = 0;
for (const name of readdirSync(root, { recursive: true }).map(String)) {
  if (!name.endsWith('.js')) continue;
  const kb = gzipSync(readFileSync(`${root}/${name}`), { level: 9 }).length / 1000;
  const max = name === 'index.js' ? ENTRY_KB : CHUNK_KB;
  if (kb > max) bad++;
  console.log(`${name} ${kb.toFixed(1)} kB of ${max}${kb > max ? '  TOO BIG' : ''}`);
}
if (!/export\s*\{[^}]*\bas render\b/.test(readFileSync(`${root}/index.js`, 'utf8'))) {
  bad++;
  console.log('index.js does not export render()');
}
process.exit(bad ? 1 : 0);
