/** Calls merged by path: weighed, laid out as bars, searched, and paired with those of another recording. */

import type { Flame, FlameFrame } from '../api/types.gen';
import { isBusy } from './ledger';

export type Frame = FlameFrame;

export const WEIGHTS = [
  { id: 'account', label: 'Step time', what: 'each instant of the step once' },
  { id: 'device', label: 'Device time', what: 'time in which the device works' },
  { id: 'idle', label: 'Idle time', what: 'time in which the device, or a job without one, waits; it stands at what causes it' },
  { id: 'host', label: 'Host time', what: 'time of all host threads' },
  { id: 'bytes', label: 'Bytes', what: 'allocated memory, frees not subtracted' },
] as const;
export type Weight = (typeof WEIGHTS)[number]['id'];

/** Parents come before their children; the root's parent is -1. */
export interface Tree { frames: readonly Frame[]; parent: readonly number[]; children: readonly (readonly number[])[] }

/** A node's bar, in parts of the whole width; `depth` 0 is the zoomed node. */
export interface Cell { node: number; depth: number; from: number; to: number }

const ROOT = 0;

export function treeOf({ frames, frame, parent }: Flame): Tree {
  const ofNode = frame.flatMap((number) => frames[number] ?? []);
  return { frames: ofNode, parent, children: childrenOf(parent) };
}

function childrenOf(parent: readonly number[]): number[][] {
  const children = parent.map((): number[] => []);
  parent.forEach((above, node) => children[above]?.push(node));
  return children;
}

/** Each node's own amount; of one entry alone if `entry` is a position. */
export function ownOf(flame: Flame, weight: Weight, entry: number | null = null): number[] {
  const amounts = weight === 'host' ? flame.host_ns : weight === 'bytes' ? flame.bytes : flame.account_ns;
  const entryOf = (node: number): number | null => flame.frames[flame.frame[node] ?? 0]?.entry ?? null;
  const busy = flame.entries.map(isBusy);
  const counts = (of: number | null): boolean => {
    if (entry !== null && of !== entry) return false;
    if (weight === 'device') return of !== null && busy[of] === true;
    if (weight === 'idle') return of !== null && flame.entries[of]?.at_work === 'none';
    return true;
  };
  return amounts.map((amount, node) => (counts(entryOf(node)) ? amount : 0));
}

/** Amounts of each node and all below it. */
export function totalsOf(parent: readonly number[], own: readonly number[]): number[] {
  const totals = [...own];
  for (let node = totals.length - 1; node > 0; node -= 1) totals[parent[node] ?? ROOT] = (totals[parent[node] ?? ROOT] ?? 0) + (totals[node] ?? 0);
  return totals;
}

/** The weights with any amount. */
export const weightsOf = (flame: Flame): Weight[] =>
  WEIGHTS.map(({ id }) => id).filter((id) => ownOf(flame, id).some((amount) => amount > 0));

export const heaviest = (nodes: readonly number[], totals: readonly number[]): number[] =>
  nodes.filter((node) => (totals[node] ?? 0) > 0).toSorted((one, other) => (totals[other] ?? 0) - (totals[one] ?? 0));

const LEAST = 1 / 4000; // of the width: less than a pixel of any screen
export const MOST_ROWS = 64;

/** The bars below `focus`, including it: children side by side, the heaviest first. */
export function cellsOf(tree: Tree, totals: readonly number[], focus: number): Cell[] {
  const whole = totals[focus] ?? 0;
  if (whole <= 0) return [];
  const cells: Cell[] = [{ node: focus, depth: 0, from: 0, to: 1 }];
  for (let at = 0; at < cells.length; at += 1) { // cells are added during the walk
    const cell = cells[at];
    if (!cell || cell.depth + 1 >= MOST_ROWS) continue;
    let { from } = cell;
    for (const node of heaviest(tree.children[cell.node] ?? [], totals)) {
      const to = from + (totals[node] ?? 0) / whole;
      if (to - from < LEAST) break; // the others are not heavier
      cells.push({ node, depth: cell.depth + 1, from, to });
      from = to;
    }
  }
  return cells;
}

/** From the root to the node, including both. */
export function pathTo(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0 && path.length <= tree.parent.length; at = tree.parent[at] ?? -1) path.unshift(at);
  return path;
}

/** The innermost node around all of them. */
export function commonOf(tree: Tree, nodes: readonly number[]): number {
  const paths = nodes.map((node) => pathTo(tree, node));
  let common = ROOT;
  for (const [depth, node] of (paths[0] ?? []).entries()) {
    if (!paths.every((path) => path[depth] === node)) break;
    common = node;
  }
  return common;
}

/** The nodes whose name contains the text, in any case; none for an empty text. */
export function found(tree: Tree, text: string): Set<number> {
  const wanted = text.trim().toLowerCase();
  return new Set(wanted ? tree.frames.flatMap(({ name, file = '' }, node) => (`${name} ${file}`.toLowerCase().includes(wanted) ? node : [])) : []);
}

/** Amounts of the nodes together; nodes inside others count once. */
export function heldBy(tree: Tree, totals: readonly number[], nodes: ReadonlySet<number>): number {
  const inside: boolean[] = [];
  let sum = 0;
  tree.parent.forEach((above, node) => {
    const covered = above >= 0 && inside[above] === true;
    inside[node] = covered || nodes.has(node);
    if (nodes.has(node) && !covered) sum += totals[node] ?? 0;
  });
  return sum;
}

const KINDS: Record<FlameFrame['kind'], string> = {
  root: '', module: 'module', function: 'function', operator: 'operator', annotation: 'annotation', call: 'runtime call', kernel: 'device work',
  cpu: 'CPU work', idle: 'idle time', others: 'smaller parts',
};

/** A kind from a newer server keeps its name. */
export const kindText = (kind: FlameFrame['kind']): string => KINDS[kind] ?? String(kind);

/** Two recordings in one tree, with the own amounts of each, per step. */
export interface Pair { tree: Tree; before: number[]; after: number[] }

export function paired(base: Flame, candidate: Flame, weight: Weight): Pair {
  const frames: FlameFrame[] = [];
  const parent: number[] = [];
  const known = new Map<string, number>();
  const place = (flame: Flame): number[] => {
    const at: number[] = [];
    flame.frame.forEach((number, node) => {
      const frame = flame.frames[number];
      const above = at[flame.parent[node] ?? -1] ?? -1;
      if (!frame) return;
      const key = `${above} ${frame.kind} ${frame.entry === null || frame.entry === undefined ? '' : flame.entries[frame.entry]?.id} ${frame.file ?? ''} ${frame.name}`;
      const there = known.get(key) ?? frames.length;
      if (there === frames.length) {
        known.set(key, there);
        frames.push(frame);
        parent.push(above);
      }
      at[node] = there;
    });
    return at;
  };
  const places = [place(base), place(candidate)];
  const [before = [], after = []] = [base, candidate].map((flame, side) => {
    const own = frames.map(() => 0);
    ownOf(flame, weight).forEach((amount, node) => {
      const at = places[side]?.[node] ?? ROOT;
      own[at] = (own[at] ?? 0) + amount / flame.steps;
    });
    return own;
  });
  return { tree: { frames, parent, children: childrenOf(parent) }, before, after };
}

/** A width for both sides, so that new and removed nodes are both visible. */
export const widthsOf = ({ before, after }: Pick<Pair, 'before' | 'after'>): number[] => before.map((amount, node) => Math.max(amount, after[node] ?? 0));

/** From -1 (all of it is gone) over 0 (unchanged) to 1 (all of it is new). */
export const changeOf = (before: number, after: number): number => (before === after ? 0 : (after - before) / Math.max(before, after));
