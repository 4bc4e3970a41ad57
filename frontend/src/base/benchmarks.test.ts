import { expect, it } from 'vitest';
import { dotAxis, plotText, queueText, speedUp, speedUpText, useText, verdictText, whenText } from './benchmarks';

const of = (ratio: number, low: number, high: number, verdict: 'faster' | 'slower' | 'no_clear_difference' = 'faster') => ({ ratio, low, high, verdict });

it('turns the ratio of times into how many times as fast, and its interval round', () => {
  expect(speedUp(of(0.5, 0.4, 0.8))).toEqual({ middle: 2, low: 1.25, high: 2.5 });
});

it('writes as many decimals as tell the ends of the interval apart', () => {
  expect(speedUpText(of(0.5556, 0.5, 0.625))).toEqual({ factor: '1.8×', range: '(1.6–2.0)' });
  expect(speedUpText(of(0.935, 0.926, 0.943))).toEqual({ factor: '1.07×', range: '(1.06–1.08)' });
  expect(speedUpText(of(0.02, 0.019, 0.021))).toEqual({ factor: '50.0×', range: '(47.6–52.6)' });
  expect(speedUpText(of(0.004, 0.0039, 0.0041))).toEqual({ factor: '250×', range: '(244–256)' });
  expect(speedUpText(of(0.0012, 0.0008, 0.0016))).toEqual({ factor: '833×', range: '(625–>1000)' });
  expect(speedUpText(of(4e-7, 3e-7, 2e-6))).toEqual({ factor: '>1000×', range: '' });
});

it('tells no difference from too few samples', () => {
  expect(verdictText(of(0.99, 0.97, 1.02, 'no_clear_difference'))).toBe('No clear difference');
  expect(verdictText(of(0.995, 0.992, 0.998, 'no_clear_difference'))).toBe('No clear difference');
  expect(verdictText(of(0.73, 0.7, 0.8, 'no_clear_difference'))).toBe('Too few samples to tell');
});

it('begins the axis at zero and draws what is far out at its edge', () => {
  const { most, dots, beyond } = dotAxis([10, 5, 100], [10, 8], [10, 5, 100]);
  expect(most).toBeCloseTo(10.5);
  expect(dots.map(({ at }) => at)).toEqual([10 / most, 5 / most, 1]);
  expect(dots.map((dot) => dot.beyond)).toEqual([false, false, true]);
  expect(beyond).toBe(1);
});

it('puts the plot into words', () => {
  expect(plotText({ ns: 2000, samples: [1000, 3000] }, { ns: 500, samples: [] })).toBe('Before: median 2 µs, 1 µs to 3 µs. After: median 500 ns.');
});

it('says why a measurement is in no saving, the gravest reason first', () => {
  const use = { trusted: true, kind: 'cpu', recordedKind: 'cpu', ofEvents: true, inSaving: false, kept: true };
  expect(useText({ ...use, inSaving: true })).toBe('Used in the saving');
  expect(useText(use)).toBe('On its way into the saving');
  expect(useText({ ...use, kept: false })).toBe('Not used in the saving: it could not be kept');
  expect(useText({ ...use, ofEvents: false })).toContain('not exactly what the matched events do');
  expect(useText({ ...use, ofEvents: false, trusted: false })).toContain('not reliable enough');
  expect(useText({ ...use, trusted: false, kind: 'cuda' })).toContain('measured on cuda, recorded on cpu');
});

it('writes times in UTC, and what is none as it stands', () => {
  expect(whenText('2026-01-02T03:04:05+00:00')).toBe('2 Jan 2026, 03:04 UTC');
  expect(whenText('2026-01-02T03:04:05+02:00')).toBe('2 Jan 2026, 01:04 UTC');
  expect(whenText('yesterday')).toBe('yesterday');
});

it('counts who comes first', () => {
  expect([0, 1, 2].map(queueText)).toEqual(['Next in the queue', 'Waiting for 1 benchmark before it', 'Waiting for 2 benchmarks before it']);
});
