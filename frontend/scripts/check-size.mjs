// Fails when a file of the bundle is above its budget (gzip, level 9), or when the entry has lost its export.
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { gzipSync } from 'node:zlib';

const ENTRY_KB = 70;
const CHUNK_KB = 120;
const root = process.argv[2] ?? '../tb_tidy_plugin/plugin/static';
const sizeOf = (name) => gzipSync(readFileSync(`${root}/${name}`), { level: 9 }).length / 1000;

/** A file and all that it cannot start without. */
function withImports(name, seen = new Set()) {
  seen.add(name);
  for (const [, at] of readFileSync(`${root}/${name}`, 'utf8').matchAll(/(?:from|import)\s*["'](\.[^"']+)["']/g)) {
    const imported = posix.join(posix.dirname(name), at);
    if (!seen.has(imported)) withImports(imported, seen);
  }
  return seen;
}

let bad = 0;
for (const name of readdirSync(root, { recursive: true }).map(String)) {
  if (!name.endsWith('.js')) continue;
  const isEntry = name === 'index.js';
  const kb = isEntry ? [...withImports(name)].reduce((sum, each) => sum + sizeOf(each), 0) : sizeOf(name);
  const max = isEntry ? ENTRY_KB : CHUNK_KB;
  if (kb > max) bad++;
  console.log(`${name}${isEntry ? ' and what it imports' : ''} ${kb.toFixed(1)} kB of ${max}${kb > max ? '  TOO BIG' : ''}`);
}
if (!/export\s*\{[^}]*\bas render\b/.test(readFileSync(`${root}/index.js`, 'utf8'))) {
  bad++;
  console.log('index.js does not export render()');
}
process.exit(bad ? 1 : 0);
