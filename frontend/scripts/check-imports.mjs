// Fails when a file imports from a folder it may not know, touches the parent window, runs requests by itself, or names a rule.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, posix } from 'node:path';

const MAY = {
  base: ['base'], // and the types that are generated, which hold no code
  api: ['api', 'base'],
  state: ['state', 'api', 'base'],
  components: ['components', 'base'],
  views: ['state', 'api', 'components', 'base', 'styles'], // of a view that comes later
};

/** In the folder of each category, a rule is a file or a folder with its name, in which dashes are underscores. */
function ruleNames(folder) {
  const inside = (path) => readdirSync(path, { withFileTypes: true }).filter(({ name }) => !name.startsWith('_'));
  try {
    return inside(folder).filter((category) => category.isDirectory())
      .flatMap((category) => inside(`${folder}/${category.name}`))
      .map(({ name }) => basename(name, '.py').replaceAll('_', '-'));
  } catch {
    return []; // the frontend alone, without the Python package
  }
}

const rules = ruleNames('../tb_tidy_plugin/rules');
let bad = 0;
const fail = (text) => { bad++; console.error(text); };

for (const name of readdirSync('src', { recursive: true }).map((n) => String(n).replaceAll('\\', '/'))) {
  if (!/\.tsx?$/.test(name) || /\.test\.tsx?$/.test(name)) continue;
  const text = readFileSync(`src/${name}`, 'utf8');
  const area = name.split('/')[0].replace(/\.tsx?$/, '');
  for (const [, spec] of text.matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]/g)) {
    const target = posix.normalize(posix.join(posix.dirname(name), spec));
    const to = target.split('/')[0].replace(/\.tsx?$/, '');
    const ownView = area === 'views' && to === 'views'
      && (name === 'views/App.tsx'
        || (name.split('/').length > 2 && target.split('/')[1] === name.split('/')[1]));
    const typesOnly = area === 'base' && target === 'api/types.gen';
    if (area in MAY && !MAY[area].includes(to) && !ownView && !typesOnly) fail(`${name}: must not import ${target}`);
  }
  if (name !== 'state/host.ts' && /\b(?:window\.)?parent\.(?:location|history|document|postMessage)/.test(text))
    fail(`${name}: touches the parent window`);
  if (name !== 'state/settings.ts' && /\blocalStorage\b/.test(text)) fail(`${name}: touches localStorage`);
  if (area === 'state' && name !== 'state/resource.ts' && /\bAbortController\b/.test(text))
    fail(`${name}: gives requests up by itself; state/resource.ts does`);
  if (/innerHTML|insertAdjacentHTML|document\.write/.test(text)) fail(`${name}: writes HTML from text`);
  for (const id of rules) if (text.includes(id)) fail(`${name}: names the rule ${id}`);
}
console.log(`checked imports, parent window and ${rules.length} rule names: ${bad} faults`);
process.exit(bad ? 1 : 0);
