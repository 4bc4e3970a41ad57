/** Columns of the table of ranks, their order, and the distance of figures from the middle rank's. */

import type { RankRow } from '../api/types.gen';
import { columnBytes, columnTime, count } from './units';

export type RankPart = 'loading' | 'host' | 'compute' | 'copies' | 'communication' | 'idle';

export type RankColumn = RankPart | 'rank' | 'step' | 'memory' | 'last' | 'waited' | 'waits' | 'findings';
export interface RankOrder { column: RankColumn; descending: boolean }

/** Ranks that others wait for longest come first. */
export const WORST_FIRST: RankOrder = { column: 'waited', descending: true };

interface Spec {
  id: RankColumn;
  label: string;
  hint: string;
  /** Least width. */
  px: number;
  width: string;
  number: boolean;
  value: (row: RankRow) => number | null;
  text: (row: RankRow) => string;
  /** The whole that a visible difference from the middle rank is a part of. */
  whole?: (middle: number, step: number) => number;
}

const PARTS: readonly { part: RankPart; label: string; hint: string; px?: number }[] = [
  { part: 'loading', label: 'Loading', hint: 'Waiting for the data loader' },
  { part: 'host', label: 'Host', hint: 'Host work that the step waits for: Python, slow launching, compiling, allocating' },
  { part: 'compute', label: 'Compute', hint: 'Operators and kernels' },
  { part: 'copies', label: 'Copies', hint: 'Copies to, from and between devices' },
  { part: 'communication', label: 'Communication', px: 128, hint: 'Communication that nothing hides, and waiting for it: a rank that comes late has little of it' },
  { part: 'idle', label: 'Idle', hint: 'Pauses between queued work, synchronisation, and what the recording does not explain' },
];

const timed = (ns: number | null): string => (ns === null ? '–' : columnTime(ns));

function figure(id: RankColumn, label: string, hint: string, px: number, value: Spec['value'], text: Spec['text']): Spec {
  return { id, label, hint, px, width: `minmax(${px}px, 1fr)`, number: true, value, text };
}

/** A time whose distance from the middle rank is a part of the step. */
const time = (id: RankColumn, label: string, hint: string, px: number, value: Spec['value']): Spec =>
  ({ ...figure(id, label, hint, px, value, (row) => timed(value(row))), whole: (_middle, step) => step });

const RANK: Spec = {
  ...figure('rank', 'Rank', 'Opens the rank’s own overview', 84, (row) => row.rank, (row) => `Rank ${row.rank}`), width: '84px', number: false,
};
const STEP = time('step', 'Step', 'Median step besides the warm-up', 92, (row) => row.step_ns);
const MEMORY: Spec = {
  ...figure('memory', 'Memory peak', 'The most that was allocated on the fullest device', 116, (row) => row.memory_peak_bytes,
    ({ memory_peak_bytes: peak }) => (peak === null ? '–' : columnBytes(peak))),
  whole: (middle) => middle,
};
const ARRIVALS: readonly Spec[] = [
  figure('last', 'Comes last', 'To how many collectives of the steps it came last', 104, (row) => row.arrivals?.last ?? null,
    ({ arrivals }) => (arrivals ? `${count(arrivals.last)} of ${count(arrivals.met)}` : '–')),
  time('waited', 'Others wait', 'How long each other rank waits for it per step, on average', 104, (row) => row.arrivals?.waited_ns ?? null),
  figure('waits', 'Waits', 'How long it waits for others per step, on average', 92, (row) => row.arrivals?.waits_ns ?? null,
    (row) => timed(row.arrivals?.waits_ns ?? null)),
];
const FINDINGS = figure('findings', 'Findings', 'How many findings its own report has', 88, (row) => row.findings, (row) => count(row.findings));

/** Parts that no rank has, unrecorded memory, and arrivals without meetings have no column. */
export function rankColumns(rows: readonly RankRow[]): Spec[] {
  const parts = PARTS.filter(({ part }) => rows.some((row) => (row.parts_ns[part] ?? 0) > 0));
  return [
    RANK, STEP,
    ...parts.map(({ part, label, hint, px = 92 }) => time(part, label, hint, px, (row) => row.parts_ns[part] ?? 0)),
    ...(rows.some((row) => row.memory_peak_bytes !== null) ? [MEMORY] : []),
    ...(rows.some((row) => row.arrivals) ? ARRIVALS : []),
    FINDINGS,
  ];
}

/** The rows by one column; a rank without the figure comes last, equal ones by their numbers. */
export function rankOrder<Row extends RankRow>(rows: readonly Row[], { column, descending }: RankOrder): Row[] {
  const spec = rankColumns(rows).find(({ id }) => id === column);
  const key = (row: Row): number => spec?.value(row) ?? (descending ? -Infinity : Infinity);
  return rows.toSorted((a, b) => (key(a) === key(b) ? a.rank - b.rank : (key(a) - key(b)) * (descending ? -1 : 1)));
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] ?? 0 : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}

const LEVELS = [0.05, 0.1, 0.2, 0.4];

/** Level of the distance above the middle rank, as a part of the step: 0 for less than 5 % of it, up to 4 from 40 %. */
export const shadeOf = (value: number, middle: number, whole: number): number =>
  (whole > 0 ? LEVELS.filter((level) => value - middle >= level * whole).length : 0);
