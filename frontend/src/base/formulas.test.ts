import { expect, it } from 'vitest';
import { saving } from '../testing/fixtures';
import { busyFormula, costFormula, jointFormula, savingFormula, stepFormula } from './formulas';

const text = (lines: readonly { name: string; text: string }[], name: string) => lines.find((line) => line.name === name)?.text;

it('a speed-up is the step now by the step that is left', () => {
  const lines = savingFormula(saving(20e6, { speedup: 100 / 80 }), 30e6, 100e6, 'step');
  expect(text(lines, 'Speed')).toBe('100 ms ÷ (100 ms − 20 ms) = 1.25×');
  expect(text(lines, 'Bounds')).toBe('10 ms at least, 30 ms at most; the matches cost 30 ms per step');
});

it('no bound is 0 ns, and a saving of nothing has no speed-up', () => {
  const lines = savingFormula(saving(0, { low_ns: 0, high_ns: 30e6, speedup: 1 }), 30e6, 100e6, 'step');
  expect(text(lines, 'Bounds')).toBe('30 ms at most; the matches cost 30 ms per step');
  expect(text(lines, 'Speed')).toBeUndefined();
  expect(text(jointFormula(saving(0), [], 'step'), 'Bounds')).toBe('nothing that the recording shows');
});

it('says how a fix can save more than its matches take', () => {
  expect(text(savingFormula(saving(20e6), 15e6, 100e6, 'step'), 'More than the cost')).toContain('what waits for them');
  expect(text(savingFormula(saving(20e6), 20e6, 100e6, 'step'), 'More than the cost')).toBeUndefined();
});

it('says how each basis works, and no speed where there are no steps', () => {
  const lines = savingFormula(saving(20e6, { speedup: null, basis: ['bound', 'measured'] }), 30e6, null, 'trace');
  expect(lines.map(({ name }) => name)).toEqual(['Upper limit from the events’ own time', 'Measured by a benchmark', 'Bounds']);
});

it('a cost is shown beside the step that it is a share of', () => {
  expect(text(costFormula(5e6, 0.05, 12, 'step'), 'Share')).toBe('5 ms ÷ 100 ms (the recorded step) = 5 %');
  expect(costFormula(5e6, null, 1, 'trace').length).toBe(1);
});

it('all together against the sum of the rows, whichever is more', () => {
  const rows = [{ saving: saving(6e6) }, { saving: saving(4e6) }, { saving: null }];
  const overlap = (joint: number) => text(jointFormula(saving(joint), rows, 'step'), 'Overlap');
  expect(overlap(7e6)).toBe('The rows add up to 10 ms; 3 ms of that is time that several findings share, which counts once');
  expect(overlap(12e6)).toContain('2 ms more is saved only with all fixes');
  expect(overlap(10e6)).toContain('they share no time');
});

it('steps and devices', () => {
  expect(stepFormula({ basis: 'profiler_step', count: 3, median_ns: 1 }, 1)[0]?.text).toContain('median of 3 steps, 1 of them warm-up or outliers');
  expect(busyFormula(30e6, 120e6, 'the average step')[0]?.text).toBe('30 ms in which a kernel or a copy ran ÷ 120 ms of the average step = 25 %');
});
