/** A view in a file of its own. */

import type { ComponentChildren, ComponentType } from 'preact';
import { useChunk, type Chunk } from './chunk';
import { Skeleton } from './Progress';

/** The component is in an object, since a chunk holds a module. */
export type LaterView = Chunk<{ View: ComponentType }>;

export function Later({ of, meanwhile = <Skeleton rows={6} /> }: { of: LaterView; meanwhile?: ComponentChildren }) {
  const chunk = useChunk(of);
  if (chunk === 'missing') return <MissingChunk />;
  return chunk ? <chunk.View /> : <>{meanwhile}</>;
}

export const MissingChunk = () => <p class="pad">This part of the page has changed on the server. Reload the page.</p>;
