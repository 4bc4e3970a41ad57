import { describe, expect, it } from 'vitest';
import { change, comparison, operatorChange } from '../testing/fixtures';
import { changeColumns } from './changes';
import { changeShare, fromTo, groundsText, isKept, reasonText, verdictText, wayOf } from './compare';
import { signed } from './units';

const side = (ms: number | null) => ({ ...comparison().base, median_ns: ms === null ? null : ms * 1e6 });
const slower = comparison({ verdict: 'slower', step_ratio: { value: 1.25, low: 1.2, high: 1.3 }, base: side(100), candidate: side(125) });
const even = comparison({ verdict: 'no_clear_difference', step_ratio: { value: 1.01, low: 0.95, high: 1.07 }, base: side(100), candidate: side(101) });

describe('the verdict', () => {
  it('is a sentence with the factor, its interval and both medians', () => {
    const faster = comparison({ base: side(33.9), candidate: side(22.1), step_ratio: { value: 22.1 / 33.9, low: 1 / 1.58, high: 1 / 1.48 } });
    expect(verdictText(faster)).toBe('Candidate is 1.53× faster (1.48–1.58): 33.9 → 22.1 ms per step');
    expect(verdictText(slower)).toBe('Candidate is 1.25× slower (1.20–1.30): 100 → 125 ms per step');
    expect(verdictText(even)).toBe('No clear difference: 100 → 101 ms per step');
    expect(verdictText(comparison({ step_ratio: { value: 0.01, low: 0.009, high: 0.0111 }, base: side(100), candidate: side(1) })))
      .toBe('Candidate is 100× faster (90.1–111): 100 → 1 ms per step');
  });

  it('says what it rests on', () => {
    expect(groundsText(slower)).toContain('Medians of 10 and 10 steps');
    expect(groundsText(even)).toContain('the candidate takes 0.95 to 1.07 times as long, so it may be faster or slower.');
    expect(groundsText({ ...even, base: { ...side(100), steps: 1 }, candidate: { ...side(101), steps: 1 } })).toContain('One step on each side; ');
    expect(groundsText(comparison({ step_ratio: null }))).toBe('');
  });

  it('is none without steps', () => {
    expect(verdictText(comparison({ step_ratio: null, candidate: side(null) }))).toBe('Step times cannot be compared: one side has no steps');
  });

  it('names the parts that changed most in its direction', () => {
    const entry = (label: string, base: number, candidate: number) => ({ label, title: label, owners: [], base_ns: base, candidate_ns: candidate });
    const ledger = { base_step_ns: 100e6, candidate_step_ns: 125e6, entries: [
      entry('Data loading', 13e6, 30e6), entry('CPU: matrix products', 40e6, 41e6), entry('CPU: optimizer', 20e6, 1e6), entry('CPU: Python between operators', 1e6, 9e6),
    ] };
    expect(reasonText({ ...slower, ledger })).toBe('Most of it: Data loading 13 → 30 ms and CPU: Python between operators 1 → 9 ms.');
    expect(reasonText({ ...comparison(), ledger })).toBe('Most of it: CPU: optimizer 20 → 1 ms.');
    expect(reasonText({ ...even, ledger })).toBe('');
    expect(reasonText({ ...slower, ledger: null })).toBe('');
  });
});

describe('a difference', () => {
  it('has its sign and unit', () => {
    expect([signed(-11_800_000), signed(320_000), signed(0)]).toEqual(['−11.8 ms', '+320 µs', '0 ns']);
  });

  it('says by sign and word whether it is good, unless it is slight', () => {
    expect([wayOf(-1), wayOf(1), wayOf(0)]).toEqual([
      { sign: '▼', word: 'less', tone: 'good' }, { sign: '▲', word: 'more', tone: 'bad' }, { sign: '=', word: 'the same', tone: 'even' },
    ]);
    expect(wayOf(5, 10)).toEqual({ sign: '▲', word: 'more', tone: 'even' });
  });

  it('has one unit for both of its ends', () => {
    expect(fromTo(1_200_000_000, 400_000_000)).toBe('1.2 → 0.4 s');
    expect(fromTo(0, 0)).toBe('0 → 0 ns');
  });

  it('is a share of what the baseline took', () => {
    const shares = [[200, 100], [100, 137], [100, 100], [0, 5], [5, 0], [0, 0]].map(([base_ns = 0, candidate_ns = 0]) => changeShare({ base_ns, candidate_ns }));
    expect(shares).toEqual(['−50 %', '+37 %', '0 %', 'new', 'gone', '–']);
  });
});

it('knows promises that can have been kept: of findings that are gone or better', () => {
  const kept = (changes: object): boolean => isKept(change('a', changes));
  expect([kept({}), kept({ state: 'better' }), kept({ state: 'worse' }), kept({ predicted_ns: null }), kept({ realised_ns: null })])
    .toEqual([true, true, false, false, false]);
});

describe('the columns of changed operators', () => {
  const row = operatorChange('aten::mm', { base_calls: 4, candidate_calls: 1.5, candidate_ns: 1_000_000 });
  const cells = (of: typeof row) => changeColumns([of]).map(({ label, text }) => [label, text(of)]);

  it('are host times alone where there is no device', () => {
    expect(cells(row)).toEqual([
      ['Name', 'aten::mm'], ['Shapes', '64×64 · float32'], ['Calls per step', '4 → 1.5'], ['Baseline', '3.00 ms'], ['Candidate', '1.00 ms'], ['Difference', '▼ −2.00 ms'],
    ]);
  });

  it('are host and device times where there is one', () => {
    expect(cells({ ...row, base_device_ns: 0, candidate_device_ns: 7000 }).slice(3)).toEqual([
      ['Host baseline', '3.00 ms'], ['Host candidate', '1.00 ms'], ['Host difference', '▼ −2.00 ms'],
      ['Device baseline', '0 ns'], ['Device candidate', '7.00 µs'], ['Device difference', '▲ +7.00 µs'],
    ]);
  });

  it('say how replayed ones are known', () => {
    expect(cells({ ...row, known_by: 'unique' }).at(-1)).toEqual(['From capture', 'unique']);
  });

  it('say a number of calls once where it is the same', () => {
    expect(cells({ ...row, candidate_calls: 4 })[2]).toEqual(['Calls per step', '4']);
  });
});
