import { describe, expect, it } from 'vitest';
import { byteTicks, ticks } from './axis';

describe('marks of an axis', () => {
  it('are round and end at the largest value or below', () => {
    expect(ticks(100)).toEqual([0, 50, 100]);
    expect(ticks(181_259_000)).toEqual([0, 50e6, 100e6, 150e6]);
    expect(ticks(9, 3)).toEqual([0, 5]);
  });

  it('are few for any size', () => {
    for (let most = 1; most < 1e12; most *= 1.7) {
      expect(ticks(most).length).toBeGreaterThanOrEqual(2);
      expect(ticks(most).length).toBeLessThanOrEqual(5);
      expect(Math.max(...ticks(most))).toBeLessThanOrEqual(most * (1 + 1e-9));
      expect(byteTicks(most).length).toBeLessThanOrEqual(5);
    }
  });

  it('are powers of two for bytes', () => {
    expect(byteTicks(3 * 2 ** 30)).toEqual([0, 2 ** 30, 2 ** 31, 3 * 2 ** 30]);
    expect(byteTicks(3)).toEqual([0, 1, 2, 3]);
  });

  it('are zero alone where there is nothing', () => {
    expect(ticks(0)).toEqual([0]);
    expect(byteTicks(Number.NaN)).toEqual([0]);
  });
});
