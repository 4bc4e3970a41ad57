import { describe, expect, it } from 'vitest';
import type { RankRow } from '../api/types.gen';
import { medianOf, rankColumns, rankOrder, shadeOf, WORST_FIRST } from './rankTable';

const row = (rank: number, changes: Partial<RankRow> = {}): RankRow => ({
  rank, worker: `host_${rank}`, span: '1', clock_ahead_ns: null, clock_error_ns: null, step_ns: 10e6, parts_ns: { compute: 4e6 }, memory_peak_bytes: null, arrivals: { met: 4, last: 0, late_ns: 0, waited_ns: 0, waits_ns: 2e6 }, findings: 1, ...changes,
});
const late = { met: 4, last: 4, late_ns: 2e6, waited_ns: 2e6, waits_ns: 0 };
const labels = (rows: RankRow[]): string[] => rankColumns(rows).map(({ label }) => label);
const ranks = (rows: RankRow[]): number[] => rows.map(({ rank }) => rank);

describe('columns', () => {
  it('are there where a rank has the figure', () => {
    expect(labels([row(0)])).toEqual(['Rank', 'Step', 'Compute', 'Comes last', 'Others wait', 'Waits', 'Findings']);
    expect(labels([row(0), row(1, { parts_ns: { loading: 1, idle: 0 }, memory_peak_bytes: 1 })]))
      .toEqual(['Rank', 'Step', 'Loading', 'Compute', 'Memory peak', 'Comes last', 'Others wait', 'Waits', 'Findings']);
    expect(labels([row(0, { arrivals: null })])).toEqual(['Rank', 'Step', 'Compute', 'Findings']);
  });

  it('say numbers with their units, and a dash where there is none', () => {
    const [first, none] = [row(3, { memory_peak_bytes: 2 ** 30, arrivals: late }), row(4, { step_ns: null, arrivals: null })];
    const texts = (of: RankRow): string[] => rankColumns([first, none]).map(({ text }) => text(of));
    expect(texts(first)).toEqual(['Rank 3', '10.0 ms', '4.00 ms', '1.00 GiB', '4 of 4', '2.00 ms', '0 ns', '1']);
    expect(texts(none)).toEqual(['Rank 4', '–', '4.00 ms', '–', '–', '–', '–', '1']);
  });
});

describe('the order', () => {
  it('is worst first, then by rank', () => {
    expect(ranks(rankOrder([row(0), row(1), row(2, { arrivals: late })], WORST_FIRST))).toEqual([2, 0, 1]);
  });

  it('has ranks without the figure at the end, either way', () => {
    const rows = [row(0, { memory_peak_bytes: null }), row(1, { memory_peak_bytes: 5 }), row(2, { memory_peak_bytes: 9 })];
    expect(ranks(rankOrder(rows, { column: 'memory', descending: true }))).toEqual([2, 1, 0]);
    expect(ranks(rankOrder(rows, { column: 'memory', descending: false }))).toEqual([1, 2, 0]);
  });
});

it('shades by the distance to the middle rank, as a part of the step', () => {
  expect([100, 104, 105, 110, 120, 139, 140, 500].map((value) => shadeOf(value, 100, 100))).toEqual([0, 0, 1, 2, 3, 3, 4, 4]);
  expect(shadeOf(50, 100, 100)).toBe(0);
  expect(shadeOf(5, 0, 0)).toBe(0);
});

it('takes half way between the middle two of an even number', () => {
  expect([medianOf([3, 1, 2]), medianOf([4, 1, 2, 3]), medianOf([])]).toEqual([2, 2.5, 0]);
});
