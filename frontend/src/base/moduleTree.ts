/** A tree in pre-order as rows: the visible ones, and the targets of the arrow keys. */

export interface TreeRow { parent: number | null; last: number; depth: number }

/** Positions of the visible rows, without those inside a closed row. */
export function visibleRows(rows: readonly TreeRow[], closed: ReadonlySet<number>): number[] {
  const seen: number[] = [];
  for (let at = 0; at < rows.length; at += 1) {
    seen.push(at);
    const row = rows[at];
    if (row && closed.has(at)) at = Math.max(at, row.last);
  }
  return seen;
}

export const hasChildren = (rows: readonly TreeRow[], at: number): boolean => (rows[at]?.last ?? at) > at;

/** Deep trees start closed below this depth; the first levels say most. */
export function startClosed(rows: readonly TreeRow[], depth: number): Set<number> {
  return new Set(rows.flatMap((row, at) => (row.depth >= depth && row.last > at ? [at] : [])));
}

export type TreeMove = { to: number } | { open: number } | { close: number } | null;

/** The effect of a key at a row, as in every tree: right opens or goes in, left closes or goes out. */
export function treeMove(rows: readonly TreeRow[], closed: ReadonlySet<number>, at: number, key: string): TreeMove {
  const seen = visibleRows(rows, closed);
  const place = seen.indexOf(at);
  const inside = hasChildren(rows, at);
  const go = (index: number): TreeMove => {
    const to = seen[Math.min(seen.length - 1, Math.max(0, index))];
    return to === undefined ? null : { to };
  };
  switch (key) {
    case 'ArrowDown': return go(place + 1);
    case 'ArrowUp': return go(place - 1);
    case 'Home': return go(0);
    case 'End': return go(seen.length - 1);
    case 'ArrowRight': return !inside ? null : closed.has(at) ? { open: at } : { to: at + 1 };
    case 'ArrowLeft': {
      if (inside && !closed.has(at)) return { close: at };
      const parent = rows[at]?.parent ?? null;
      return parent === null ? null : { to: parent };
    }
    case 'Enter': case ' ': return !inside ? null : closed.has(at) ? { open: at } : { close: at };
    default: return null;
  }
}
