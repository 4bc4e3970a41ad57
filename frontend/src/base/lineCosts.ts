/** Costs of lines, for the gutter of a source file. */

import { columnShare, columnTime, nanoseconds, partShare, plural } from './units';
import { FROM_CAPTURE, type KnownFromCapture } from './words';

/** The passes of a step, as in the ledger's owners, and the class of each one's colour. */
export const PASSES = [
  { name: 'forward', colour: 'part-blue' }, { name: 'backward', colour: 'part-green' }, { name: 'optimizer', colour: 'part-pink' },
  { name: 'loading', colour: 'part-orange' }, { name: 'other', colour: 'part-plain' },
] as const;

export type PassName = (typeof PASSES)[number]['name'];

interface Columns extends Record<`${PassName}_ns`, number[]> {
  steps: number; step_ns: number; line: number[]; total_ns: number[]; calls: number[]; shared: number[]; ties: number[][];
  known_by: (KnownFromCapture | null)[];
}
interface PlaceLike { file: string; line: number; ties?: number[]; matches: number; duration_ns: number }

/** A piece of a bar: its width and, but for called functions, its pass. */
interface Part { width: number; colour: string }

export interface LineCost {
  /** Length of the bar, relative to the most expensive line. */
  bar: number;
  time: string;
  share: string;
  /** The line's own time by pass, with the rest of the bar for the functions that it calls; empty for a finding's cost. */
  parts: readonly Part[];
  passes: Partial<Record<PassName, string>>;
  /** All known figures, in words. */
  words: string;
}

export type LineCosts = ReadonlyMap<number, LineCost>;

/** What all calls on each line cost: an average step, by pass. */
export function costsOfCalls(columns: Columns, per: string): LineCosts {
  const { steps, step_ns: whole, line, total_ns: totals } = columns;
  const most = Math.max(1, ...totals);
  return new Map(line.map((number, at) => {
    const total = totals[at] ?? 0;
    const own = PASSES.flatMap(({ name, colour }) => {
      const ns = columns[`${name}_ns`][at] ?? 0;
      return ns > 0 ? [{ name, colour, ns }] : [];
    });
    const called = total - own.reduce((sum, { ns }) => sum + ns, 0);
    const part = whole > 0 ? total / whole : null;
    const figures = [...own.map(({ name, ns }) => `${name} ${nanoseconds(ns / steps)}`), ...(called > 0 ? [`in functions that it calls ${nanoseconds(called / steps)}`] : [])];
    const share = part === null ? '' : `, ${partShare(part)} of the ${per} time`;
    const spent = total > 0 ? `${nanoseconds(total / steps)} per ${per}${share}: ${figures.join(', ')}; ` : `nothing in the ${per}s; `;
    return [number, {
      bar: total / most,
      time: total > 0 ? columnTime(total / steps) : '',
      share: part === null || total === 0 ? '' : columnShare(part),
      parts: [...own, { colour: 'part-called', ns: called }].map(({ colour, ns }) => ({ colour, width: ns / Math.max(1, total) })),
      passes: Object.fromEntries(own.map(({ name, ns }) => [name, columnTime(ns / steps)])),
      words: `${spent}${plural(columns.calls[at] ?? 0, 'call')} in the recording${remarks(columns, at)}`,
    }];
  }));
}

function remarks({ shared, ties, known_by: known }: Columns, at: number): string {
  const lines = shared[at] ?? 1;
  const others = ties[at] ?? [];
  const way = known[at];
  return `${others.length > 0 ? `; or line ${others.join(' or ')}` : ''}${lines > 1 ? `; shared by ${lines} lines` : ''}${way ? `; replayed: ${FROM_CAPTURE[way]}` : ''}`;
}

/** The cost of one finding at its places in a file, per step or per trace. */
export function costsOfPlaces(places: readonly PlaceLike[], file: string, per: string, stepNs: number | null): LineCosts {
  const here = places.filter((place) => place.file === file);
  const most = Math.max(1, ...here.map((place) => place.duration_ns));
  return new Map(here.toReversed().map(({ line, matches, duration_ns: duration }) => {
    const part = stepNs ? duration / stepNs : null;
    const words = `${nanoseconds(duration)} per ${per} in ${plural(matches, 'match', 'matches')}${part === null ? '' : `; ${partShare(part)} of the ${per} time`}`;
    return [line, { bar: duration / most, time: columnTime(duration), share: part === null ? '' : columnShare(part), parts: [], passes: {}, words }];
  }));
}

/** The passes in which any line has time, in the order of the columns. */
export const passesIn = (costs: LineCosts): (typeof PASSES)[number][] => {
  const found = new Set([...costs.values()].flatMap(({ passes }) => Object.keys(passes)));
  return PASSES.filter(({ name }) => found.has(name));
};

/** The next most expensive line after `from`; after the last one, and from any other line, the most expensive. */
export function nextHottest(costs: LineCosts, from: number | null): number | null {
  const order = [...costs].toSorted(([, a], [, b]) => b.bar - a.bar).map(([line]) => line);
  return order[(order.indexOf(from ?? 0) + 1) % Math.max(1, order.length)] ?? null;
}
