import { describe, expect, it } from 'vitest';
import {
  accountOf, boundText, busyNs, communicationText, folded, gathered, groupsOf, hostPace, knownText, limitText, reasonText, withoutDevice, type EntryLike, type LedgerLike,
} from './ledger';
import { groupsIn, ledgerEntry as entry } from '../testing/fixtures';

const ofEntries = (entries: LedgerLike['entries'], mean: number, n = 1): LedgerLike => ({ step_ns: { mean, n }, entries, groups: groupsIn(entries) });

/** Two steps of 1000 and 1003 ns: nothing divides evenly. */
const LEDGER = ofEntries([
  entry('compute', 'matrix', [600, 601]), entry('compute', 'pointwise', [151, 150]), entry('copy', 'to_device', [101, 100]),
  entry('launch_pace', null, [99, 100]), entry('graph_start', null, [30, 43]), entry('stream_wait', null, [14, 0]),
  entry('unrecorded_host', null, [5, 4]), entry('cpu', 'python', [0, 5]),
], 1001, 2);
const sum = (values: readonly { ns: number }[]): number => values.reduce((total, { ns }) => total + ns, 0);

describe('an account', () => {
  it('adds up to the average step in whole ns, and to each step', () => {
    const average = accountOf(LEDGER, null);
    expect(average.whole).toBe(1001);
    expect(sum(average.rows)).toBe(1001);
    expect(average.rows.every(({ ns }) => Number.isInteger(ns))).toBe(true);
    expect(average.rows.reduce((total, row) => total + row.share, 0)).toBeCloseTo(1, 12);
    for (const [step, length] of [[0, 1000], [1, 1003]] as const) {
      expect(accountOf(LEDGER, step).whole).toBe(length);
      expect(sum(accountOf(LEDGER, step).rows)).toBe(length);
    }
  });

  it('changes no entry by more than what division cuts off', () => {
    for (const { entry: { ns_total: total }, ns } of accountOf(LEDGER, null).rows) expect(Math.abs(ns - total / 2)).toBeLessThan(1);
  });

  it('says the sum of its entries, where those are of other steps than the average', () => {
    const { whole, rows } = accountOf({ ...LEDGER, step_ns: { mean: 5000, n: 2 } }, null);
    expect(whole).toBe(sum(rows));
    expect(whole).toBeLessThan(1002);
  });

  it('has the largest first, and no row for what took no time', () => {
    expect(accountOf(LEDGER, 0).rows.map(({ ns }) => ns)).toEqual([600, 151, 101, 99, 30, 14, 5]);
    expect(accountOf(ofEntries([], 0), null)).toEqual({ whole: 0, rows: [], groups: [] });
  });

  it('folds what is below 1 %', () => {
    const account = accountOf(LEDGER, 0);
    expect(folded(account).small.map(({ ns }) => ns)).toEqual([5]);
    expect(sum(folded(account).listed) + sum(folded(account).small)).toBe(1000);
    expect(folded(accountOf(ofEntries([entry('compute', 'matrix', [99]), entry('host_work', null, [1])], 100), null)).small).toEqual([]);
  });
});

describe('groups', () => {
  it('are sums of entries that add up to the step, in the order of a bar', () => {
    const account = accountOf(LEDGER, 0);
    const groups = groupsOf(account);
    expect(groups.map(({ group, label, ns, slices }) => [group, label, ns, slices.map((slice) => `${slice.label} ${slice.colour} ${slice.ns}`)])).toEqual([
      ['compute', 'Device compute', 751, ['Matrix products blue 600', 'Pointwise operators green-light 151']], ['copies', 'Copies', 101, ['Copies to the device orange 101']],
      ['queued', 'Queued work', 44, ['Graph start rows 30', 'Stream wait rows 14']], ['launch', 'Launch overhead', 99, ['Launch overhead stripes 99']],
      ['unnamed', 'Not explained', 5, ['Host not recorded grey 5']],
    ]);
    expect(sum(groups)).toBe(1000);
    expect(sum(groups.flatMap(({ slices }) => slices))).toBe(1000);
    expect(busyNs(account)).toBe(852);
  });

  it('below 2 % are one, where they are several', () => {
    const entries = [entry('compute', 'matrix', [194]), entry('host_work', null, [3]), entry('launch_pace', null, [2]), entry('profiler', null, [1])];
    expect(gathered(accountOf(ofEntries(entries, 200), null)).map(({ label, colour, ns }) => [label, colour, ns])).toEqual([
      ['Device compute', 'blue', 194], ['3 smaller parts', 'grey', 6],
    ]);
    expect(gathered(accountOf(ofEntries(entries.slice(0, 2), 197), null)).map(({ label, colour }) => [label, colour])).toEqual([['Device compute', 'blue'], ['Host work', 'red']]);
  });

  it('are kinds of work where the CPU does it all', () => {
    const entries = [entry('cpu', 'matrix', [120]), entry('cpu', 'python', [70]), entry('unrecorded_host', null, [10])];
    const parts = gathered(accountOf(ofEntries(entries, 200), null));
    expect(parts.map(({ colour, label, ns }) => [colour, label, ns])).toEqual([
      ['blue', 'Matrix products', 120], ['red', 'Python between operators', 70], ['grey', 'Not explained', 10],
    ]);
    expect(parts.map((part) => part.entries)).toEqual(entries.map((each) => [each]));
  });

  it('have the names that the report gives them, which this page need not know', () => {
    const moon: EntryLike = { ...entry('host_work', null, [10]), label: '__proto__', colour: 'dots' };
    const [group] = groupsOf(accountOf({ ...ofEntries([moon], 10), groups: [{ group: 'host', label: 'Phases of the moon', colour: 'sky' }] }, null));
    expect(group).toEqual({ group: 'host', label: 'Phases of the moon', colour: 'sky', ns: 10, share: 1, slices: [{ label: '__proto__', colour: 'dots', ns: 10, share: 1 }] });
  });
});

describe('words', () => {
  it('say how near the limit is, and of how much that is known', () => {
    expect(limitText({ share_reached: 0.28, bound: 'memory', known_share: 1 })).toBe('28 % of the device’s limit (memory)');
    expect(limitText({ share_reached: null, bound: 'fp32-cores', known_share: 1 })).toBe('Runs on float32 cores, not on matrix units');
    expect([1, 0.996, 0.5].map((known) => knownText({ share_reached: 0.28, bound: 'memory', known_share: known }))).toEqual(['', '', 'known for 50 % of its time']);
  });

  it('split communication as the row is, or say how long it waits at least', () => {
    const row = { entry: { ...entry('communication', null, [0]), ns_total: 30_000 }, ns: 10_000, share: 0.5 };
    expect(communicationText({ transfer_ns: 24_000, wait_ns: 6000, by: 'ranks' }, row)).toBe('8 µs transfer, 2 µs waiting for other ranks');
    expect(communicationText({ transfer_ns: null, wait_ns: 6000, by: 'at-least' }, row)).toBe('At least 2 µs of it waits for other ranks');
    expect(communicationText({ transfer_ns: null, wait_ns: 0, by: 'at-least' }, row)).toBe('');
  });

  it('say that nothing is to be fixed only where the limit is known', () => {
    const limit = { share_reached: 0.84, bound: 'compute' as const, known_share: 1 };
    expect(reasonText({ limit, nothing_to_fix: 'It is near.' })).toBe('Nothing to fix: It is near.');
    expect(reasonText({ limit: { ...limit, share_reached: null }, nothing_to_fix: 'Its efficiency is not known.' })).toBe('Its efficiency is not known.');
    expect(reasonText({ nothing_to_fix: null })).toBe('');
  });

  it('say what bounds the step', () => {
    const row = { entry: { title: 'Device: matrix products', limit: { share_reached: 0.84, bound: 'compute' as const, known_share: 1 } }, ns: 9, share: 0.9 };
    expect(boundText(row, 'step')).toBe('Device: matrix products: 84 % of the device’s limit');
    expect(boundText({ ...row, entry: { ...row.entry, limit: null } }, 'step')).toBe('Device: matrix products: 90 % of the step');
  });

  it('name the device of a recording that names none', () => {
    expect(withoutDevice({ hidden_device: 'an unknown device' })).toBe('An unknown device');
    expect(withoutDevice({ hidden_device: null })).toBe('CPU only');
  });

  it('say the host’s pace where it is another one', () => {
    expect([100, 101, 103, 97, null].map((host) => hostPace({ host_step_ns: host, step_ns: { median: 100 } }))).toEqual([null, null, 103, 97, null]);
  });
});
