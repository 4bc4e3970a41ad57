import { describe, expect, it } from 'vitest';
import { figures, segments, type BreakdownLike } from './breakdown';

const DEVICE: BreakdownLike = {
  wall_ns: 1000, data_loading_ns: 200, host_to_device_ns: 60, device_to_host_ns: 40, communication_ns: 250,
  communication_exposed_ns: 100, compute_ns: 500, device_busy_ns: 700,
};
const HOST: BreakdownLike = {
  wall_ns: 1000, data_loading_ns: 200, host_to_device_ns: null, device_to_host_ns: null, communication_ns: null,
  communication_exposed_ns: null, compute_ns: null, device_busy_ns: null,
};
const parts = (breakdown: BreakdownLike): [string, number][] => segments(breakdown).map(({ part, ns }) => [part, ns]);
const sum = (breakdown: BreakdownLike): number => segments(breakdown).reduce((total, { share }) => total + share, 0);

describe('the bar', () => {
  it('parts the device’s time', () => {
    expect(parts(DEVICE)).toEqual([['compute', 500], ['communication', 100], ['copies', 100], ['idle', 300]]);
  });

  it('parts the host’s time where there is no device', () => {
    expect(parts(HOST)).toEqual([['data', 200], ['rest', 800]]);
  });

  it('is whole, also where the figures of several devices do not fit exactly', () => {
    for (const breakdown of [DEVICE, HOST, { ...DEVICE, compute_ns: 710 }, { ...DEVICE, communication_exposed_ns: 400 }]) {
      expect(sum(breakdown)).toBeCloseTo(1);
      expect(segments(breakdown).every(({ ns }) => ns > 0)).toBe(true);
    }
  });

  it('says no more than is known', () => {
    expect(parts({ ...DEVICE, compute_ns: null })).toEqual([['busy', 700], ['idle', 300]]);
    expect(segments({ ...DEVICE, wall_ns: 0 })).toEqual([]);
  });
});

it('names what overlaps beside the bar, and nothing that is not known', () => {
  expect(figures(DEVICE).map(({ label, share }) => [label, share])).toEqual([
    ['data loading', 0.2], ['copies to device', 0.06], ['copies to host', 0.04], ['communication', 0.25],
  ]);
  expect(figures(HOST)).toEqual([]);
});
