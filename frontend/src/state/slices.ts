/** Windows of a timeline: requested in tiles, visible ones first, then likely ones; recent ones are cached. */

import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { ErrorInfo } from '../api/types.gen';
import type { Piece } from '../base/timelineLayout';
import { nextTiles, parentOf, tileName, tileSpan, tilesOf, type Span, type Tile } from '../base/timelineWindow';
import { resource } from './resource';

/** Content of a tile's answer. */
type Answer = Omit<Piece, 'clip'>;

export interface Slices<A extends Answer = Answer> {
  /** Bars for the last requested window: each part in the best available detail. */
  pieces: ReadonlySignal<readonly (A & Piece)[]>;
  /** True if all of it is available in full detail. */
  complete: ReadonlySignal<boolean>;
  error: ReadonlySignal<ErrorInfo | null>;
  need: (window: Span) => void;
  again: () => void;
  /** Aborts all pending requests. */
  stop: () => void;
}

export const KEPT_TILES = 40;
const AT_ONCE = 2; // the server answers one after the other
const MOST_LEVELS = 40;

export function slices<A extends Answer>(ask: (window: Span, given: AbortSignal) => Promise<A>, limits: Span): Slices<A> {
  const pieces = signal<readonly (A & Piece)[]>([]);
  const complete = signal(false);
  const tiles = resource<A>({ keep: KEPT_TILES });
  const known = (tile: Tile): A | undefined => tiles.answers.peek().get(tileName(tile));
  let window: Span | null = null;

  function update(): void {
    if (!window) return;
    const shown = tilesOf(window, limits);
    pieces.value = shown.flatMap((tile) => {
      const found = best(tile);
      return found ? [{ ...found, clip: tileSpan(tile) }] : [];
    });
    complete.value = shown.every(known);
    fetchNext(shown);
  }

  /** The tile itself, or the smallest available one around it; it is now the last to be evicted. */
  function best(tile: Tile): A | null {
    for (let at = tile, up = 0; up < MOST_LEVELS; at = parentOf(at), up += 1) {
      const found = known(at);
      if (!found) continue;
      tiles.put(tileName(at), found);
      return found;
    }
    return null;
  }

  function fetchNext(shown: readonly Tile[]): void {
    if (!window) return;
    const isMissing = (tile: Tile): boolean => !known(tile) && !tiles.asking.peek().has(tileName(tile));
    const missing = shown.filter(isMissing);
    const wanted = missing.length > 0 ? missing : shown.every(known) ? nextTiles(window, limits).filter(isMissing) : [];
    for (const tile of wanted.slice(0, AT_ONCE - tiles.asking.peek().size)) void fetchTile(tile);
  }

  /** Failed requests are not repeated automatically. */
  async function fetchTile(tile: Tile): Promise<void> {
    const { from, to } = tileSpan(tile);
    const part = { from: Math.max(from, limits.from), to: Math.min(to, limits.to) };
    if (!await tiles.ask(tileName(tile), (given) => ask(part, given))) return;
    tiles.forgive();
    update();
  }

  return {
    pieces, complete,
    error: computed(() => [...tiles.failures.value.values()].find((each) => each !== null) ?? null),
    need: (wanted) => { window = wanted; update(); },
    again: () => { tiles.forgive(); update(); },
    stop: () => tiles.stop(),
  };
}
