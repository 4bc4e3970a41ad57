import { describe, expect, it } from 'vitest';
import type { Lane } from '../api/types.gen';
import { averaged, causeOf, groupsOf, mostly, totalOf } from './lanes';

const DEVICE: Lane = {
  lane: 'cuda:0', communication_overlapped_ns: 5,
  parts: [
    { part: 'matrix', mean_ns: 40, steps_ns: [30, 50] },
    { part: 'optimizer', mean_ns: 10, steps_ns: [10, 10] },
    { part: 'communication_exposed', mean_ns: 10, steps_ns: [20, 0] },
    { part: 'idle_data_loading', mean_ns: 30, steps_ns: [40, 20] },
    { part: 'idle_unknown', mean_ns: 10, steps_ns: [0, 20] },
  ],
};
const HOST: Lane = {
  lane: 'host', communication_overlapped_ns: 0,
  parts: [{ part: 'communication', mean_ns: 1, steps_ns: [1] }, { part: 'optimizer', mean_ns: 1, steps_ns: [1] }, { part: 'forward', mean_ns: 2, steps_ns: [2] }],
};
const brief = (lane: Lane, step: number | null) => groupsOf(lane, step).map(({ group, ns, slices }) => [group, ns, slices.map(({ part }) => part)]);

describe('groups', () => {
  it('hold the parts of the average step', () => {
    expect(brief(DEVICE, null)).toEqual([
      ['compute', 50, ['matrix', 'optimizer']], ['communication', 10, ['communication_exposed']],
      ['idle', 40, ['idle_data_loading', 'idle_unknown']],
    ]);
  });

  it('hold those of one step, without what took no time in it', () => {
    expect(brief(DEVICE, 1)).toEqual([['compute', 60, ['matrix', 'optimizer']], ['idle', 40, ['idle_data_loading', 'idle_unknown']]]);
    expect(brief(DEVICE, 0)[2]).toEqual(['idle', 40, ['idle_data_loading']]);
  });

  it('add up to the step and to one', () => {
    for (const step of [null, 0, 1]) {
      const groups = groupsOf(DEVICE, step);
      expect(totalOf(groups)).toBe(100);
      expect(groups.flatMap(({ slices }) => slices).reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    }
  });

  it('have the optimizer with the model on the host, and all communication there is', () => {
    expect(brief(HOST, null)).toEqual([['communication', 1, ['communication']], ['model', 3, ['optimizer', 'forward']]]);
    expect(groupsOf(HOST, null)[0]?.label).toBe('Communication');
    expect(groupsOf(DEVICE, null)[1]?.label).toBe('Exposed communication');
  });

  it('are none for a step that is not there', () => {
    expect(groupsOf(DEVICE, 7)).toEqual([]);
  });
});

it('averages devices, one of which lacks a part', () => {
  const other: Lane = { lane: 'cuda:1', communication_overlapped_ns: 1, parts: [{ part: 'host_to_device', mean_ns: 60, steps_ns: [60, 60] }, { part: 'matrix', mean_ns: 20, steps_ns: [10, 30] }] };
  const mean = averaged([DEVICE, other]);
  expect(mean?.parts.map(({ part, mean_ns }) => [part, mean_ns])).toEqual([
    ['matrix', 30], ['optimizer', 5], ['communication_exposed', 5], ['host_to_device', 30], ['idle_data_loading', 15], ['idle_unknown', 5],
  ]);
  expect(mean?.parts[0]?.steps_ns).toEqual([20, 40]);
  expect(mean?.communication_overlapped_ns).toBe(3);
  expect(averaged([DEVICE])).toBe(DEVICE);
  expect(averaged([])).toBeNull();
});

it('says what most of a group is', () => {
  const [compute, communication, idle] = groupsOf(DEVICE, null);
  expect(compute && mostly(compute)).toBe('Matrix products');
  expect(communication && mostly(communication)).toBeNull();
  expect(idle && mostly(idle)).toBe('Data loading');
});

it('leads from a part of the time to the checks that explain it', () => {
  expect(causeOf([{ part: 'idle_unknown', ns: 1 }, { part: 'idle_launch_bound', ns: 9 }])).toBe('launch');
  expect(causeOf([{ part: 'idle_unknown', ns: 9 }, { part: 'idle_launch_bound', ns: 1 }])).toBeNull();
  expect(causeOf([])).toBeNull();
});
