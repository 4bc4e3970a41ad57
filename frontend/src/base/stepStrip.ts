/** Steps as columns: their heights, parts, and marks of odd ones. */

export type Oddity = 'warmup' | 'outlier';
export const ODDITIES: Record<Oddity, { sign: string; word: string }> = {
  warmup: { sign: '◇', word: 'warm-up' },
  outlier: { sign: '▲', word: 'outlier' },
};

export interface StepLike { name: string; duration_ns: number; oddity?: Oddity | null }

export interface Column {
  index: number;
  name: string;
  /** The number that stands below the column. */
  label: string;
  ns: number;
  /** Height relative to the highest column. */
  height: number;
  oddity: Oddity | null;
  /** Bottom first; shares of the column. */
  pieces: readonly Piece[];
}

export interface Piece { colour: string; share: number }
/** The parts of a step by groups. */
export type GroupsAt = (index: number | null) => readonly { group: string; label: string; ns: number; slices: readonly Piece[] }[];

/** The longest step: as high as a column gets. */
export const longest = (steps: readonly StepLike[]): number => Math.max(1, ...steps.map((step) => step.duration_ns));

/** One column per step; a step without parts is one empty piece. `most` is the duration of the highest column. */
export function columnsOf(groupsAt: GroupsAt, steps: readonly StepLike[], most = longest(steps)): Column[] {
  return steps.map(({ name, duration_ns: ns, oddity = null }, index) => ({
    index, name, ns, oddity, label: numberOf(name) ?? String(index + 1), height: ns / most,
    pieces: groupsAt(index).flatMap(({ slices }) => slices).map(({ colour, share }) => ({ colour, share })),
  }));
}

/** The profiler's own number of a step. */
const numberOf = (name: string): string | null => /^ProfilerStep#(\d+)$/.exec(name)?.[1] ?? null;

/** Odd steps by kind, for a sentence: `{ sign, word, names }`. */
export function oddSteps(steps: readonly StepLike[]): { sign: string; word: string; names: string[] }[] {
  const kinds: Oddity[] = ['warmup', 'outlier'];
  return kinds.flatMap((kind) => {
    const names = steps.filter((step) => step.oddity === kind).map((step) => step.name);
    return names.length > 0 ? [{ ...ODDITIES[kind], names }] : [];
  });
}
