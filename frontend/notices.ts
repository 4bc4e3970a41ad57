// Names the packages whose code is in the bundle, with their licences, in a file of the bundle.
import { readdirSync, readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

const FILE = 'THIRD_PARTY_NOTICES.txt';
const PACKAGE = /^(.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+))[\\/]/;
const LICENSE = /^(?:licen[cs]e|copying|notice)(?:\..+)?$/i;
const LINE = `\n\n${'-'.repeat(80)}\n\n`;

/** A plugin for the bundle and one for its workers, whose code is built first; both add to one file. */
export function notices(): { bundle: Plugin; worker: Plugin } {
  const folders = new Map<string, string>(); // of each package, by its name

  /** Notes the packages whose code is left in a chunk. */
  function note(modules: Record<string, { renderedLength: number }>): void {
    for (const [id, { renderedLength }] of Object.entries(modules)) {
      const [, folder, name] = (renderedLength > 0 && PACKAGE.exec(id.replace(/^\0/, ''))) || [];
      if (folder && name) folders.set(name.replaceAll('\\', '/'), folder);
    }
  }

  return {
    worker: {
      name: 'notices-of-workers',
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') note(chunk.modules);
      },
    },
    bundle: {
      name: 'notices',
      generateBundle(_options, bundle) {
        for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk') note(chunk.modules);
        const parts = [...folders].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, folder]) => notice(name, folder));
        const head = 'The page of TorchTidy contains code of these packages, under the licences below.';
        this.emitFile({ type: 'asset', fileName: FILE, source: `${[head, ...parts].join(LINE)}\n` });
      },
    },
  };
}

/** Name, version and licence of a package. Throws where it has no text of a licence: its code must not be shipped. */
function notice(name: string, folder: string): string {
  const { version, license }: Record<string, string> = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const files = readdirSync(folder).filter((file) => LICENSE.test(file)).toSorted();
  if (!license || !files.length) throw new Error(`${name} is in the bundle and has no licence`);
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, 'utf8').replaceAll('\r\n', '\n').trim());
  return [`${name} ${version} (${license})`, ...texts].join('\n\n');
}
