// Fails when two style sheets begin rules with one class: those of later views stay when another view is opened.
import { readdirSync, readFileSync } from 'node:fs';

const root = 'src/styles';
const homes = new Map();
for (const sheet of readdirSync(root)) {
  const text = readFileSync(`${root}/${sheet}`, 'utf8').replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/@[^{;]*\{|@[^;{]*;/g, '');
  for (const [, selectors] of text.matchAll(/([^{}]+)\{[^{}]*\}/g)) {
    for (const selector of selectors.split(',')) {
      const name = /^\s*\.([\w-]+)/.exec(selector)?.[1];
      if (name) homes.set(name, new Set([...homes.get(name) ?? [], sheet]));
    }
  }
}
const entry = readFileSync('src/index.ts', 'utf8');
const isLate = (sheet) => !entry.includes(`./styles/${sheet}?`);
const faults = [...homes].filter(([, sheets]) => sheets.size > 1 && [...sheets].some(isLate));
for (const [name, sheets] of faults) console.log(`.${name} begins rules in ${[...sheets].join(' and ')}`);
console.log(`checked ${homes.size} classes: ${faults.length} faults`);
process.exit(faults.length > 0 ? 1 : 0);
