import { describe, expect, it } from 'vitest';
import type { Lane } from '../api/types.gen';
import { groupsAt } from './lanes';
import { columnsOf, oddSteps, type StepLike } from './stepStrip';

const LANE: Lane = {
  lane: 'cuda:0', communication_overlapped_ns: 0,
  parts: [{ part: 'matrix', mean_ns: 75, steps_ns: [150, 25] }, { part: 'idle_unknown', mean_ns: 50, steps_ns: [50, 75] }],
};
const STEPS: StepLike[] = [{ name: 'ProfilerStep#7', duration_ns: 200, oddity: 'warmup' }, { name: 'ProfilerStep#8', duration_ns: 100 }];

describe('columns', () => {
  it('are as high as their step is long, and cut into its parts', () => {
    expect(columnsOf(groupsAt(LANE), STEPS).map(({ label, height, oddity, pieces }) => ({ label, height, oddity, pieces }))).toEqual([
      { label: '7', height: 1, oddity: 'warmup', pieces: [{ part: 'matrix', share: 0.75 }, { part: 'idle_unknown', share: 0.25 }] },
      { label: '8', height: 0.5, oddity: null, pieces: [{ part: 'matrix', share: 0.25 }, { part: 'idle_unknown', share: 0.75 }] },
    ]);
  });

  it('are counted where steps have no number of their own', () => {
    expect(columnsOf(groupsAt(null), [{ name: 'Optimizer.step#SGD.step', duration_ns: 5 }])).toMatchObject([{ label: '1', height: 1, pieces: [] }]);
  });

  it('have no height where no step has a length', () => {
    expect(columnsOf(groupsAt(null), [{ name: 'a', duration_ns: 0 }])[0]?.height).toBe(0);
  });
});

it('names odd steps by kind', () => {
  expect(oddSteps([...STEPS, { name: 'x', duration_ns: 1, oddity: 'outlier' }, { name: 'y', duration_ns: 1, oddity: 'outlier' }])).toEqual([
    { sign: '◇', word: 'warm-up', names: ['ProfilerStep#7'] }, { sign: '▲', word: 'outlier', names: ['x', 'y'] },
  ]);
  expect(oddSteps([{ name: 'x', duration_ns: 1 }])).toEqual([]);
});
