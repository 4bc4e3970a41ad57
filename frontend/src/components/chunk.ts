/** Parts of the page in separate files: fetched on first use, or earlier when the page is idle. */

import { useEffect, useState } from 'preact/hooks';

export interface Chunk<Module> {
  /** Fetches it once; again after a failure. */
  fetch: () => Promise<Module>;
  /** The module, null until it is loaded. */
  known: () => Module | null;
}

/** `load` imports the module. */
export function chunk<Module>(load: () => Promise<Module>): Chunk<Module> {
  let known: Module | null = null;
  let coming: Promise<Module> | null = null;
  const fetched = async (): Promise<Module> => {
    try {
      known = await load();
      return known;
    } finally {
      coming = null;
    }
  };
  return { known: () => known, fetch: () => (known ? Promise.resolve(known) : coming ??= fetched()) };
}

/** The module of a chunk: null while it loads, `missing` if the server has another build of the page by now. */
export function useChunk<Module>(of: Chunk<Module>): Module | 'missing' | null {
  const [isMissing, setMissing] = useState(false);
  const [, setCame] = useState(false);
  useEffect(() => {
    if (!of.known()) void of.fetch().then(() => setCame(true), () => setMissing(true));
  }, [of]);
  return of.known() ?? (isMissing ? 'missing' : null);
}

const idle = (): Promise<unknown> => new Promise((done) => {
  if (typeof requestIdleCallback === 'function') requestIdleCallback(done);
  else setTimeout(done, 200); // Safari
});

/** Fetches chunks one after the other, each when the page is idle. */
export async function fetchWhenIdle(chunks: readonly Chunk<unknown>[]): Promise<void> {
  for (const each of chunks) {
    await idle();
    await each.fetch().catch(() => null); // reported where it is needed
  }
}
