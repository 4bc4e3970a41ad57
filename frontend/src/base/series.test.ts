import { describe, expect, it } from 'vitest';
import { across, areaPath, down, pointAt, stepPath } from './series';

const FRAME = { from: 0, to: 100, most: 10, width: 200, height: 50 };
const SERIES = { times: [0, 50, 75], values: [0, 10, 5] };

describe('a series that holds its values', () => {
  it('is a line of steps up to the end of the frame', () => {
    expect(stepPath(SERIES, FRAME)).toBe('M0 50H100V0H150V25H200');
    expect(areaPath(SERIES, FRAME)).toBe('M0 50H100V0H150V25H200V50H0Z');
  });

  it('is nothing without points', () => {
    expect(stepPath({ times: [], values: [] }, FRAME)).toBe('');
    expect(areaPath({ times: [], values: [] }, FRAME)).toBe('');
  });

  it('stays inside the frame', () => {
    expect([down(FRAME, -5), down(FRAME, 20), down({ ...FRAME, most: 0 }, 1)]).toEqual([50, 0, 50]);
    expect(across({ ...FRAME, to: 0 }, 7)).toBe(0);
  });
});

it('finds the value at a time', () => {
  expect([-1, 0, 49, 50, 74, 75, 1e9].map((time) => pointAt(SERIES.times, time))).toEqual([-1, 0, 0, 1, 1, 2, 2]);
  expect(pointAt([], 5)).toBe(-1);
});
