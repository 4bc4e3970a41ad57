import { describe, expect, it } from 'vitest';
import {
  accountOf, boundText, busyNs, communicationText, folded, gathered, groupsOf, hostPace, isIn, knownText, limitText, reasonText, recordingText, sourceText, withoutDevice,
  type Cause, type EntryLike, type Kind, type LedgerLike, type Recording,
} from './ledger';

const entry = (cause: Cause, kind: Kind | null, steps: number[]): EntryLike => ({
  id: `${cause}:${kind}`, cause, kind, ns_total: steps.reduce((sum, ns) => sum + ns, 0), ns_by_step: steps,
});

/** Two steps of 1000 and 1003 ns: nothing divides evenly. */
const LEDGER: LedgerLike = {
  step_ns: { mean: 1001, n: 2 },
  entries: [
    entry('compute', 'matrix', [600, 601]), entry('compute', 'pointwise', [151, 150]), entry('copy', 'to_device', [101, 100]),
    entry('launch_pace', null, [99, 100]), entry('graph_start', null, [30, 43]), entry('stream_wait', null, [14, 0]),
    entry('unrecorded_host', null, [5, 4]), entry('cpu', 'python', [0, 5]),
  ],
};
const sum = (values: readonly { ns: number }[]): number => values.reduce((total, { ns }) => total + ns, 0);
/** From a newer server. */
const unknown = (cause: string, kind: string | null): EntryLike => JSON.parse(JSON.stringify({ id: 'x', cause, kind, ns_total: 10, ns_by_step: [10] }));

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
    expect(accountOf({ step_ns: { mean: 0, n: 1 }, entries: [] }, null)).toEqual({ whole: 0, rows: [] });
  });

  it('folds what is below 1 %', () => {
    const account = accountOf(LEDGER, 0);
    expect(folded(account).small.map(({ ns }) => ns)).toEqual([5]);
    expect(sum(folded(account).listed) + sum(folded(account).small)).toBe(1000);
    expect(folded(accountOf({ step_ns: { mean: 100, n: 1 }, entries: [entry('compute', 'matrix', [99]), entry('host_work', null, [1])] }, null)).small).toEqual([]);
  });
});

describe('groups', () => {
  it('are sums of entries that add up to the step, in the order of a bar', () => {
    const groups = groupsOf(accountOf(LEDGER, 0));
    expect(groups.map(({ group, ns, slices }) => [group, ns, slices.map(({ part }) => part)])).toEqual([
      ['compute', 751, ['matrix', 'pointwise']], ['copies', 101, ['to_device']], ['queued', 44, ['graph_start', 'stream_wait']],
      ['launch', 99, ['launch_pace']], ['unnamed', 5, ['unrecorded_host']],
    ]);
    expect(sum(groups)).toBe(1000);
    expect(sum(groups.flatMap(({ slices }) => slices))).toBe(1000);
    expect(busyNs(groups)).toBe(852);
  });

  it('below 2 % are one, where they are several', () => {
    const groups = groupsOf(accountOf({ step_ns: { mean: 200, n: 1 }, entries: [entry('compute', 'matrix', [194]), entry('host_work', null, [3]), entry('launch_pace', null, [2]), entry('profiler', null, [1])] }, null));
    expect(gathered(groups).map(({ label, ns }) => [label, ns])).toEqual([['Device compute', 194], ['3 smaller parts', 6]]);
    expect(gathered(groups.slice(0, 2)).map(({ group, part }) => [group, part])).toEqual([['compute', 'compute'], ['host', 'host']]);
  });

  it('are kinds of work where the CPU does it all', () => {
    const entries = [entry('cpu', 'matrix', [120]), entry('cpu', 'python', [70]), entry('unrecorded_host', null, [10])];
    const parts = gathered(groupsOf(accountOf({ step_ns: { mean: 200, n: 1 }, entries }, null)));
    expect(parts.map(({ part, label, ns }) => [part, label, ns])).toEqual([
      ['matrix', 'Matrix products', 120], ['python', 'Python between operators', 70], ['unnamed', 'Not explained', 10],
    ]);
    expect(parts.map((part) => entries.findIndex((each) => isIn(part, each)))).toEqual([0, 1, 2]);
  });

  it('hold causes and kinds that this page does not know, and class names are never theirs', () => {
    const [group] = groupsOf(accountOf({ step_ns: { mean: 10, n: 1 }, entries: [unknown('__proto__', null)] }, null));
    expect([group?.group, group?.slices[0]?.part]).toEqual(['other', 'other']);
    expect(groupsOf(accountOf({ step_ns: { mean: 10, n: 1 }, entries: [unknown('compute', 'x hidden')] }, null))[0]?.slices[0]).toMatchObject({ part: 'other', label: 'x hidden' });
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
    expect(withoutDevice({ recording: 'no-device' })).toBe('A device whose work was not recorded');
    expect(withoutDevice({ recording: 'unknown-device' })).toBe('An unknown device');
    expect(withoutDevice({ recording: 'steady' })).toBe('CPU only');
  });

  it('have a banner for every kind of recording but steady ones', () => {
    const kinds: Recording[] = ['steady', 'start-up', 'compilation', 'capture', 'thinned', 'no-device', 'unknown-device', 'empty'];
    const whats = kinds.map((kind) => recordingText(kind, null)?.what ?? '');
    expect(whats[0]).toBe('');
    expect(new Set(whats).size).toBe(kinds.length);
    expect(recordingText('start-up', 'The server’s own words.')).toEqual({ what: 'The server’s own words.', why: '' });
    expect(recordingText('steady', 'Words.')).toBeNull();
    expect(recordingText(JSON.parse('"warped_time"'), null)?.what).toContain('warped time');
  });

  it('say where steps come from, and the host’s pace where it is another one', () => {
    expect(sourceText('profiler_step')).toBe('marked by the profiler');
    expect(sourceText(JSON.parse('"moon_phase"'))).toBe('moon phase');
    expect([100, 101, 103, 97, null].map((host) => hostPace({ host_step_ns: host, step_ns: { median: 100 } }))).toEqual([null, null, 103, 97, null]);
  });
});
