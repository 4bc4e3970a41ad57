import { describe, expect, it } from 'vitest';
import { decades, intensityOf, plotOf, type Dot } from './roofline';

const dot = (name: string, flops: number, moved: number, share: number): Dot => ({
  kind: 'operator', key: name, name, detail: '', total_ns: 1, share, flops_per_second: flops, bytes_per_second: moved, roofline: null, bound: null, findings: [],
});
const DEVICE = { bytes_per_second: 1e12, ceilings: [{ name: 'float32', flops_per_second: 1e13 }] };

describe('the roofline plot', () => {
  it('has a slope of the memory that meets the ceiling at the ridge', () => {
    const { x, y, lines } = plotOf(DEVICE, [dot('mm', 1e12, 1e10, 0.5), dot('add', 1e11, 1e12, 0.1)]);
    expect([x, y]).toEqual([{ low: -1, high: 2 }, { low: 11, high: 13 }]);
    const [memory, ceiling] = lines;
    expect(memory).toMatchObject({ name: 'memory', x1: 0, y1: 1, x2: expect.closeTo(2 / 3), y2: 0 });
    expect(ceiling).toMatchObject({ name: 'float32', x1: expect.closeTo(2 / 3), y1: 0, x2: 1, y2: 0 });
  });

  it('has dots by work for each byte and rate, whose area is their share', () => {
    const { dots } = plotOf(DEVICE, [dot('add', 1e11, 1e12, 0.1), dot('mm', 1e12, 1e10, 0.4)]);
    expect(dots.map(({ dot: { name }, x, y, radius }) => [name, x, y, radius])).toEqual([['mm', 1, 0.5, 18], ['add', 0, 1, 9]]);
    expect(intensityOf(dot('mm', 1e12, 1e10, 0))).toBe(100);
  });

  it('does without limits, and without dots', () => {
    expect(plotOf({ bytes_per_second: null, ceilings: [] }, [dot('mm', 3e12, 1e10, 1)])).toMatchObject({ x: { low: 2, high: 3 }, y: { low: 12, high: 13 }, lines: [] });
    expect(plotOf({ bytes_per_second: null, ceilings: [] }, []).dots).toEqual([]);
    expect(decades({ low: -1, high: 2 })).toEqual([-1, 0, 1, 2]);
  });
});
