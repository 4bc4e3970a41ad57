/** A view in a file of its own. */

import type { ComponentChildren, ComponentType } from 'preact';
import { useChunk } from './chunk';
import { Skeleton } from './Progress';

/** `load` is looked at once. */
export function Later({ load, meanwhile = <Skeleton rows={6} /> }: { load: () => Promise<ComponentType>; meanwhile?: ComponentChildren }) {
  const chunk = useChunk(async () => ({ View: await load() })); // in an object: a state that is a function would be called
  if (chunk === 'missing') return <MissingChunk />;
  return chunk ? <chunk.View /> : <>{meanwhile}</>;
}

export const MissingChunk = () => <p class="pad">This part of the page has changed on the server. Reload the page.</p>;
