import { expect, it } from 'vitest';
import { costsOfCalls, costsOfPlaces, nextHottest } from './lineCosts';

const COSTS = costsOfCalls({ wall_ns: 100e6, line: [5, 6, 9], host_ns: [10e6, 40e6, 0], device_ns: [0, 2e6, 0], calls: [1, 1200, 3], shared: [1, 3, 1], known_by: [null, 'renamed', null] });

it('gives each line its time, its part of the recording, and all in words', () => {
  expect(COSTS.get(6)).toEqual({ bar: 1, time: '40.0 ms', share: '40.0 %', words: '40 ms in 1,200 calls, 2 ms on the device; 40 % of the recording; shared by 3 lines; replayed: by its place' });
  expect(COSTS.get(5)).toEqual({ bar: 0.25, time: '10.0 ms', share: '10.0 %', words: '10 ms in 1 call; 10 % of the recording' });
  expect(COSTS.get(7)).toBeUndefined();
});

it('gives the lines of a finding what it costs there', () => {
  const place = { file: 'a.py', line: 7, matches: 12, duration_ns: 3e6 };
  const costs = costsOfPlaces([place, { ...place, line: 8, duration_ns: 1.5e6 }, { ...place, file: 'b.py' }], 'a.py', 'step', 30e6);
  expect([...costs.keys()].toSorted()).toEqual([7, 8]);
  expect(costs.get(8)).toEqual({ bar: 0.5, time: '1.50 ms', share: '5.00 %', words: '1.5 ms per step in 12 matches; 5 % of the step time' });
  expect(costsOfPlaces([place], 'a.py', 'trace', null).get(7)?.share).toBe('');
});

it('goes from the costliest line down, and around', () => {
  expect([null, 6, 5, 9, 77].map((from) => nextHottest(COSTS, from))).toEqual([6, 5, 9, 6, 6]);
  expect(nextHottest(new Map(), 1)).toBeNull();
});
