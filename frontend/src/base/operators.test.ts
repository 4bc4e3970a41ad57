import { describe, expect, it } from 'vitest';
import { operatorRow } from '../testing/fixtures';
import { columnFlops, columnsOf, descendsFirst, flopsText, leastWidth, sortedSecond, titleOf } from './operators';

const ROW = operatorRow('aten::mm', {
  operators: 3, calls: 1200, shapes: '4×4', known_by: 'unique', file: '/job/train.py', line: 7, function: 'step', module: 'Linear_0',
  host_total_ns: 3e6, host_self_ns: 2e6, device_total_ns: 4e6, device_self_ns: null, tensor_cores: null,
  flops_per_second: 81.34e9, roofline: 0.125, low_ns: 1000, median_ns: 2000, high_ns: 9000, slow_calls: 2,
});
const texts = (...given: Parameters<typeof columnsOf>) => columnsOf(...given).map(({ label, text }) => [label, text(ROW)]);

describe('columns', () => {
  it('have all figures of a device, with units', () => {
    expect(texts('name', true)).toEqual([
      ['Operator', 'aten::mm'], ['Calls', '1,200'], ['Host self', '2.00 ms'], ['Host total', '3.00 ms'], ['Device self', '–'],
      ['Device total', '4.00 ms'], ['Tensor cores', 'unknown'], ['FLOP/s', '81.3 GFLOP/s'], ['Roofline', '12.5 %'], ['From capture', 'unique'],
    ]);
  });

  it('have the spread for groups by shape, and nothing of a device that was not recorded', () => {
    expect(texts('shape', false)).toEqual([
      ['Operator', 'aten::mm'], ['Input shapes', '4×4'], ['Calls', '1,200'], ['Host self', '2.00 ms'], ['Host total', '3.00 ms'],
      ['FLOP/s', '81.3 GFLOP/s'], ['Low–median–high', '1 µs – 2 µs – 9 µs'], ['Slow calls', '2'],
    ]);
  });

  it('begin with the place or the module', () => {
    expect(texts('line', false).slice(0, 2)).toEqual([['Source line', 'train.py:7 step'], ['Most time in', 'aten::mm and 2 others']]);
    expect(titleOf(ROW, 'module')).toBe('Linear_0');
    expect(titleOf({ ...ROW, module: '' }, 'module')).toBe('aten::mm');
  });
});

it('sorts numbers from the largest, words from the first', () => {
  expect(['name', 'file', 'calls', 'roofline', 'tensor_cores'].map((id) => columnsOf('line', true).find((each) => each.id === id)).map((each) => each && descendsFirst(each.id)))
    .toEqual([false, false, true, true, true]);
});

it('adds up the least widths, the gaps and the edges', () => {
  expect(leastWidth(columnsOf('name', true).slice(0, 2))).toBe(200 + 64 + 12 + 32);
});

it('writes rates with three digits', () => {
  expect([0, 999, 1000, 123_456, 9.99e12, 2e18].map(flopsText)).toEqual([
    '0 FLOP/s', '999 FLOP/s', '1 kFLOP/s', '123 kFLOP/s', '9.99 TFLOP/s', '2,000 PFLOP/s',
  ]);
});

it('claims nothing where nothing ran on the device or no work is known', () => {
  const row = { ...ROW, device_total_ns: 0, flops_per_second: 0, roofline: null };
  expect(columnsOf('name', true).slice(-4, -1).map(({ text }) => text(row))).toEqual(['–', '–', '–']);
});

describe('on a phone', () => {
  const columns = columnsOf('shape', true);

  it.each(['device_self_ns', 'calls', 'slow_calls'])('the figure by which rows are sorted, %s, is in sight beside the name', (sorted) => {
    const shown = sortedSecond(columns, sorted);
    expect(shown.slice(0, 2).map(({ id }) => id)).toEqual(['name', sorted]);
    expect(shown.map(({ id }) => id).toSorted()).toEqual(columns.map(({ id }) => id).toSorted());
    expect(leastWidth(shown.slice(0, 2))).toBeLessThan(390);
  });

  it('sorting by the name changes no order', () => {
    expect(sortedSecond(columns, 'name').map(({ id }) => id)).toEqual(columns.map(({ id }) => id));
  });
});

it('rates of one prefix are equally long in a column', () => {
  expect([81.34e9, 90e9, 1e12, 999.6e9, 7].map(columnFlops)).toEqual(['81.3 GFLOP/s', '90.0 GFLOP/s', '1.00 TFLOP/s', '1,000 GFLOP/s', '7 FLOP/s']);
});
