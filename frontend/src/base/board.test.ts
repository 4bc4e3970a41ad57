import { describe, expect, it } from 'vitest';
import { found, isWorse, jobOf, loggedText, ordered, savedShare, sparkPoints, trends, trendText, type RunLike } from './board';

const MS = 1_000_000;
const row = (run: string, at: number, stepMs: number | null, changes: Partial<RunLike> = {}): RunLike => ({
  run, recorded_ms: at, known: stepMs !== null, device: 'A100', step_ns: stepMs === null ? null : stepMs * MS, saving_ns: null, action: '', logged: null, ...changes,
});

it('a job is a name without the number or date at its end', () => {
  for (const name of ['resnet_run3', 'resnet-2024-05-01', 'resnet/17', 'resnet_v2', 'resnet']) expect(jobOf(name)).toBe('resnet');
  expect(jobOf('2024-05-01')).toBe('2024-05-01');
  expect(jobOf('gpt2_eval')).toBe('gpt2_eval');
});

describe('trends', () => {
  const rows = [row('job_2', 2, 112), row('job_1', 1, 100), row('other', 3, 50), row('job_3', 3, 113), row('job_4', 4, null)];
  const known = trends(rows);

  it('follow the recordings of one job by time', () => {
    expect(known.get('job_3')?.steps).toEqual([100 * MS, 112 * MS, 113 * MS]);
    expect(known.get('job_1')?.change).toBeNull();
    expect([known.has('other'), known.has('job_4')]).toEqual([false, false]);
  });

  it('mark what got clearly slower', () => {
    expect(['job_1', 'job_2', 'job_3'].map((run) => isWorse(known.get(run) ?? { steps: [], change: null }))).toEqual([false, true, false]);
    expect(trendText(known.get('job_2') ?? { steps: [], change: null })).toBe('12 % slower than the recording before. Step times: 100 ms, 112 ms');
  });

  it('are drawn from the oldest to the newest', () => {
    expect(sparkPoints([1, 3, 2], 64, 20)).toBe('2,18 32,2 62,10');
    expect(sparkPoints([1, 1], 64, 20)).toBe('2,10 62,10');
  });
});

it('sorts by any column, with what is not known last', () => {
  const rows = [row('b', 1, null), row('a10', 2, 5, { saving_ns: 1 * MS }), row('a9', 3, 7)];
  const names = (column: Parameters<typeof ordered>[1]['column'], descending: boolean) => ordered(rows, { column, descending }).map(({ run }) => run);
  expect(names('run', false)).toEqual(['a9', 'a10', 'b']);
  expect(names('step', true)).toEqual(['a9', 'a10', 'b']);
  expect(names('step', false)).toEqual(['a10', 'a9', 'b']);
  expect(names('saving', true)[0]).toBe('a10');
  expect(savedShare(rows[1] ?? row('', 0, null))).toBe(0.2);
});

it('finds by name, device, action and what was logged', () => {
  const rows = [row('a', 1, 1, { logged: { scalars: { loss: 0.123456 }, hparams: { lr: 0.1, amp: true } } }), row('b', 1, 1, { action: 'Load batches' })];
  expect(loggedText(rows[0] ?? row('', 0, null))).toBe('loss 0.1235, lr 0.1, amp true');
  expect(found(rows, 'LR amp').map(({ run }) => run)).toEqual(['a']);
  expect(found(rows, 'batches').map(({ run }) => run)).toEqual(['b']);
});
