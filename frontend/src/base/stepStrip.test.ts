import { describe, expect, it } from 'vitest';
import { ledger, ledgerEntry } from '../testing/fixtures';
import { accountOf, groupsOf } from './ledger';
import { columnsOf, oddSteps, type StepLike } from './stepStrip';

const LEDGER = ledger([ledgerEntry('compute', 'matrix', [150, 25]), ledgerEntry('unrecorded_host', null, [50, 75])]);
const parts = (index: number | null) => groupsOf(accountOf(LEDGER, index));
const NONE = () => [];
const STEPS: StepLike[] = [{ name: 'ProfilerStep#7', duration_ns: 200, oddity: 'warmup' }, { name: 'ProfilerStep#8', duration_ns: 100 }];

describe('columns', () => {
  it('are as high as their step is long, and cut into its parts', () => {
    expect(columnsOf(parts, STEPS).map(({ label, height, oddity, pieces }) => ({ label, height, oddity, pieces }))).toEqual([
      { label: '7', height: 1, oddity: 'warmup', pieces: [{ colour: 'blue', share: 0.75 }, { colour: 'grey', share: 0.25 }] },
      { label: '8', height: 0.5, oddity: null, pieces: [{ colour: 'blue', share: 0.25 }, { colour: 'grey', share: 0.75 }] },
    ]);
  });

  it('are counted where steps have no number of their own', () => {
    expect(columnsOf(NONE, [{ name: 'Optimizer.step#SGD.step', duration_ns: 5 }])).toMatchObject([{ label: '1', height: 1, pieces: [] }]);
  });

  it('have no height where no step has a length', () => {
    expect(columnsOf(NONE, [{ name: 'a', duration_ns: 0 }])[0]?.height).toBe(0);
  });
});

it('names odd steps by kind', () => {
  expect(oddSteps([...STEPS, { name: 'x', duration_ns: 1, oddity: 'outlier' }, { name: 'y', duration_ns: 1, oddity: 'outlier' }])).toEqual([
    { sign: '◇', word: 'warm-up', names: ['ProfilerStep#7'] }, { sign: '▲', word: 'outlier', names: ['x', 'y'] },
  ]);
  expect(oddSteps([{ name: 'x', duration_ns: 1 }])).toEqual([]);
});
