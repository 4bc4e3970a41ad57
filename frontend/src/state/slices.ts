/** Windows of a timeline: asked for in tiles, what is in sight first, then what is likely to be; the last ones are kept. */

import { signal, type ReadonlySignal } from '@preact/signals';
import type { ErrorInfo } from '../api/types.gen';
import type { Piece } from '../base/timelineLayout';
import { nextTiles, parentOf, tileName, tileSpan, tilesOf, type Span, type Tile } from '../base/timelineWindow';
import { faultInfo, reach } from './connection';

/** What a tile's answer holds. */
type Answer = Omit<Piece, 'clip'>;

export interface Slices<A extends Answer = Answer> {
  /** What to draw of the window that was last needed: each part in the best detail there is. */
  pieces: ReadonlySignal<readonly (A & Piece)[]>;
  /** Whether all of it is there in full detail. */
  complete: ReadonlySignal<boolean>;
  error: ReadonlySignal<ErrorInfo | null>;
  need: (window: Span) => void;
  again: () => void;
}

export const KEPT_TILES = 40;
const AT_ONCE = 2; // the server answers one after the other
const MOST_LEVELS = 40;

export function slices<A extends Answer>(ask: (window: Span) => Promise<A>, limits: Span): Slices<A> {
  const pieces = signal<readonly (A & Piece)[]>([]);
  const complete = signal(false);
  const error = signal<ErrorInfo | null>(null);
  const kept = new Map<string, A>(); // oldest first
  const asked = new Set<string>();
  let window: Span | null = null;

  function update(): void {
    if (!window) return;
    const shown = tilesOf(window, limits);
    pieces.value = shown.flatMap((tile) => {
      const found = best(tile);
      return found ? [{ ...found, clip: tileSpan(tile) }] : [];
    });
    complete.value = shown.every((tile) => kept.has(tileName(tile)));
    fetchNext(shown);
  }

  /** The tile itself, or the smallest one around it that is there. */
  function best(tile: Tile): A | null {
    for (let at = tile, up = 0; up < MOST_LEVELS; at = parentOf(at), up += 1) {
      const found = kept.get(tileName(at));
      if (!found) continue;
      kept.delete(tileName(at)); // now the last to go
      kept.set(tileName(at), found);
      return found;
    }
    return null;
  }

  function fetchNext(shown: readonly Tile[]): void {
    if (!window) return;
    const isMissing = (tile: Tile): boolean => !kept.has(tileName(tile)) && !asked.has(tileName(tile));
    const missing = shown.filter(isMissing);
    const wanted = missing.length > 0 ? missing : shown.every((tile) => kept.has(tileName(tile))) ? nextTiles(window, limits).filter(isMissing) : [];
    for (const tile of wanted.slice(0, AT_ONCE - asked.size)) void fetchTile(tile);
  }

  async function fetchTile(tile: Tile): Promise<void> {
    const name = tileName(tile);
    asked.add(name);
    try {
      const span = tileSpan(tile);
      kept.set(name, await reach(ask({ from: Math.max(span.from, limits.from), to: Math.min(span.to, limits.to) })));
      for (const oldest of [...kept.keys()].slice(0, -KEPT_TILES)) kept.delete(oldest);
      error.value = null;
      asked.delete(name);
      update();
    } catch (failure) {
      asked.delete(name);
      error.value = faultInfo(failure); // not asked again by itself
    }
  }

  return {
    pieces, complete, error,
    need: (wanted) => { window = wanted; update(); },
    again: () => { error.value = null; update(); },
  };
}
