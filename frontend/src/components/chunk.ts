/** Parts of the page that come when they are first needed. */

import { useEffect, useState } from 'preact/hooks';

/** What `load` imports: null on its way, `missing` where the server has another build of the page by now. */
export function useChunk<Module>(load: () => Promise<Module>): Module | 'missing' | null {
  const [chunk, setChunk] = useState<Module | 'missing' | null>(null);
  useEffect(() => { void load().then(setChunk, () => setChunk('missing')); }, []);
  return chunk;
}
