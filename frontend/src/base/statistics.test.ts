import { expect, it } from 'vitest';
import { quantile, spread } from './statistics';

it('interpolates', () => {
  expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  expect(quantile([7], 0.9)).toBe(7);
  expect(quantile([], 0.5)).toBeNull();
});

it('gives the whole range of few values and percentiles of many', () => {
  expect(spread([3, 1, 2])).toEqual({ label: 'min–max', low: 1, high: 3 });
  expect(spread(Array.from({ length: 11 }, (_, index) => index))).toEqual({ label: 'p10–p90', low: 1, high: 9 });
  expect(spread([5])).toBeNull();
});
