/** All runs side by side: runs of one job, changes between them, and their order. */

import { nanoseconds, share } from './units';

export interface RunLike {
  run: string; recorded_ms: number | null; known: boolean; device: string; step_ns: number | null; saving_ns: number | null; action: string;
  logged: { scalars: Record<string, number>; hparams: Record<string, string | number | boolean> } | null;
}

export type BoardColumn = 'run' | 'recorded' | 'device' | 'step' | 'saving';
export interface BoardSort { column: BoardColumn; descending: boolean }

const COUNTED = /(?:[-_. /]*(?:v|run|try|step|epoch|attempt|seed|trial)?[-_]?\d[\d:.T_-]*)$/i;

/** The job of a run: its name without the number or the date at its end. */
export const jobOf = (run: string): string => run.replace(COUNTED, '') || run;

/** Runs of one job with a known step, oldest first. */
const history = <R extends RunLike>(rows: readonly R[]): R[] =>
  rows.filter(({ step_ns: step, recorded_ms: at }) => step !== null && at !== null).toSorted((one, other) => (one.recorded_ms ?? 0) - (other.recorded_ms ?? 0));

export interface Trend {
  /** Step times in ns up to this run, oldest first. */
  steps: readonly number[];
  /** Relative increase of the step since the previous recording: 0.12 is 12 % slower; null without one. */
  change: number | null;
}

/** The trend of each run, by its name; single runs have none. */
export function trends<R extends RunLike>(rows: readonly R[]): ReadonlyMap<string, Trend> {
  const jobs = new Map<string, R[]>();
  for (const row of history(rows)) jobs.set(jobOf(row.run), [...jobs.get(jobOf(row.run)) ?? [], row]);
  return new Map([...jobs.values()].filter((job) => job.length > 1).flatMap((job) => job.map((row, at) => {
    const steps = job.slice(0, at + 1).map(({ step_ns: step }) => step ?? 0);
    const before = steps.at(-2);
    return [row.run, { steps, change: before ? (row.step_ns ?? 0) / before - 1 : null }] as const;
  })));
}

const WORSE = 0.05; // steps of equal code differ by less

/** True if a recording is a regression: its step is clearly longer than that of the previous one. */
export const isWorse = ({ change }: Trend): boolean => change !== null && change > WORSE;

/** `12 % slower than the recording before`. */
export function trendText({ steps, change }: Trend): string {
  const all = `Step times: ${steps.map(nanoseconds).join(', ')}`;
  if (change === null) return all;
  return `${share(Math.abs(change))} ${change > 0 ? 'slower' : 'faster'} than the recording before. ${all}`;
}

/** Points of a spark line in a box of this size, oldest first; equal values form a line in the middle. */
export function sparkPoints(values: readonly number[], width: number, height: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const y = (value: number): number => (most > least ? height - 2 - ((value - least) / (most - least)) * (height - 4) : height / 2);
  return values.map((value, at) => `${Math.round((at / Math.max(1, values.length - 1)) * (width - 4)) + 2},${Math.round(y(value) * 10) / 10}`).join(' ');
}

/** The part of a step that all fixes save. */
export const savedShare = ({ step_ns: step, saving_ns: saving }: Pick<RunLike, 'step_ns' | 'saving_ns'>): number | null =>
  (step && saving !== null ? saving / step : null);

/** `loss 0.5, lr 0.1`. */
export const loggedText = ({ logged }: Pick<RunLike, 'logged'>): string =>
  [...Object.entries(logged?.scalars ?? {}), ...Object.entries(logged?.hparams ?? {})]
    .map(([name, value]) => `${name} ${typeof value === 'number' ? Number(value.toPrecision(4)) : String(value)}`).join(', ');

/** The runs with all words of the query in their name, device, action or logged values. */
export function found<R extends RunLike>(rows: readonly R[], query: string): R[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = `${row.run}\n${row.device}\n${row.action}\n${loggedText(row)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

const VALUES: Record<BoardColumn, (row: RunLike) => string | number | null> = {
  run: ({ run }) => run, recorded: ({ recorded_ms: at }) => at, device: ({ device }) => device || null, step: ({ step_ns: step }) => step, saving: savedShare,
};

/** Unknown values come last in either order. */
export function ordered<R extends RunLike>(rows: readonly R[], { column, descending }: BoardSort): R[] {
  const value = VALUES[column];
  const sign = descending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (typeof a === 'string' ? a.localeCompare(String(b), 'en', { numeric: true }) : a - Number(b));
  });
}
