import { expect, it } from 'vitest';
import { timeUnit } from './units';
import { perWhat, precisionText, rangeText } from './words';

it('never calls a definition the calling line', () => {
  expect(precisionText('definition')).toContain('The call is inside this function');
});

it('counts per trace where there are no steps', () => {
  expect([perWhat('profiler_step'), perWhat('whole_trace'), perWhat('none')]).toEqual(['step', 'trace', 'trace']);
});

it('leaves out a range without width', () => {
  const unit = timeUnit(2_000_000);
  expect(rangeText({ low_ns: 1_000_000, high_ns: 2_500_000 }, unit)).toBe('1–2.5');
  expect(rangeText({ low_ns: 1_000_000, high_ns: 1_000_100 }, unit)).toBe('');
});
