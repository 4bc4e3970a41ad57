import { expect, it } from 'vitest';
import { spread } from './statistics';

const steps = (...durations: number[]) => ({ items: durations.map((duration_ns) => ({ duration_ns })), p10_ns: 4, p90_ns: 6 });

it('gives the whole range of few steps', () => {
  expect(spread(steps(3, 1, 2))).toEqual({ label: 'min–max', low: 1, high: 3 });
});

it('gives the server’s percentiles of many', () => {
  expect(spread(steps(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))).toEqual({ label: 'p10–p90', low: 4, high: 6 });
});

it('gives the range of many where the server has no percentiles', () => {
  expect(spread({ items: steps(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).items })).toEqual({ label: 'min–max', low: 1, high: 10 });
});

it('gives nothing for a single step', () => {
  expect(spread(steps(5))).toBeNull();
});
