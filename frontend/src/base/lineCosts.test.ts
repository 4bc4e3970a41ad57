import { expect, it } from 'vitest';
import { costsOfCalls, costsOfPlaces, nextHottest, passesIn } from './lineCosts';

const none = [0, 0, 0, 0];
const COSTS = costsOfCalls({
  steps: 2, step_ns: 100e6, line: [5, 6, 9, 12], total_ns: [10e6, 40e6, 0, 4e6], calls: [1, 1200, 3, 2], shared: [1, 3, 1, 1], ties: [[], [7, 8], [], []], known_by: [null, 'renamed', null, null],
  forward_ns: [4e6, 10e6, 0, 0], backward_ns: [6e6, 20e6, 0, 0], optimizer_ns: none, loading_ns: none, other_ns: [0, 2e6, 0, 0],
}, 'step');

it('gives each line its time per step, its share, its passes, and all in words', () => {
  expect(COSTS.get(6)).toEqual({
    bar: 1, time: '20.0 ms', share: '40.0 %', passes: { forward: '5.00 ms', backward: '10.0 ms', other: '1.00 ms' },
    parts: [{ width: 0.25, colour: 'part-blue' }, { width: 0.5, colour: 'part-green' }, { width: 0.05, colour: 'part-plain' }, { width: 0.2, colour: 'part-called' }],
    words: '20 ms per step, 40 % of the step time: forward 5 ms, backward 10 ms, other 1 ms, in functions that it calls 4 ms; 1,200 calls in the recording; or line 7 or 8; shared by 3 lines; replayed: by its place',
  });
  expect(COSTS.get(5)?.words).toBe('5 ms per step, 10 % of the step time: forward 2 ms, backward 3 ms; 1 call in the recording');
  expect(COSTS.get(12)).toMatchObject({ time: '2.00 ms', passes: {}, words: '2 ms per step, 4 % of the step time: in functions that it calls 2 ms; 2 calls in the recording' });
  expect(COSTS.get(9)).toMatchObject({ bar: 0, time: '', share: '', words: 'nothing in the steps; 3 calls in the recording' });
  expect(COSTS.get(7)).toBeUndefined();
});

it('has a column for each pass in which a line has time', () => {
  expect(passesIn(COSTS).map(({ name }) => name)).toEqual(['forward', 'backward', 'other']);
  expect(passesIn(costsOfPlaces([], 'a.py', 'step', null))).toEqual([]);
});

it('gives the lines of a finding what it costs there', () => {
  const place = { file: 'a.py', line: 7, matches: 12, duration_ns: 3e6 };
  const costs = costsOfPlaces([place, { ...place, line: 8, duration_ns: 1.5e6 }, { ...place, file: 'b.py' }], 'a.py', 'step', 30e6);
  expect([...costs.keys()].toSorted()).toEqual([7, 8]);
  expect(costs.get(8)).toEqual({ bar: 0.5, time: '1.50 ms', share: '5.00 %', parts: [], passes: {}, words: '1.5 ms per step in 12 matches; 5 % of the step time' });
  expect(costsOfPlaces([place], 'a.py', 'trace', null).get(7)?.share).toBe('');
});

it('goes from the costliest line down, and around', () => {
  expect([null, 6, 5, 9, 77].map((from) => nextHottest(COSTS, from))).toEqual([6, 5, 12, 6, 6]);
  expect(nextHottest(new Map(), 1)).toBeNull();
});
