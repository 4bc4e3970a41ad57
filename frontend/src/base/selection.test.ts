import { describe, expect, it } from 'vitest';
import { select, spanText } from './selection';

const ONE = [{ run: 'empty', profiles: [] }, { run: 'only', profiles: [{ worker: 'w1', span: '1' }] }];
const RUNS = [
  { run: 'empty', profiles: [] },
  { run: 'a', profiles: [{ worker: 'w1', span: '1' }, { worker: 'w1', span: '2' }, { worker: 'w2', span: '1' }] },
  { run: 'b', profiles: [{ worker: 'w9', span: '5' }] },
];

describe('the profile that an address means', () => {
  it.each([
    ['a run', { run: 'b' }, ['b', 'w9', '5']],
    ['a worker', { run: 'a', worker: 'w2' }, ['a', 'w2', '1']],
    ['all three', { run: 'a', worker: 'w1', span: '1' }, ['a', 'w1', '1']],
    ['a worker that is gone', { run: 'a', worker: 'gone', span: '1' }, ['a', 'w1', '1']],
  ])('%s', (_, key, expected) => {
    const found = select(RUNS, { worker: '', span: '', ...key });
    expect([found?.run, found?.profile.worker, found?.profile.span]).toEqual(expected);
  });

  it.each([['no run', ''], ['a run that is gone', 'gone'], ['a run without a recording', 'empty']])('none of another run for %s', (_, run) => {
    expect(select(RUNS, { run, worker: 'w1', span: '' })).toBeNull();
    expect(select(ONE, { run, worker: '', span: '' })?.run).toBe('only');
    expect(select([], { run, worker: '', span: '' })).toBeNull();
  });
});

it('reads time stamps in nanoseconds and milliseconds as dates, and leaves the rest', () => {
  expect(spanText('1795229710790778815', 'en-GB')).toContain('2026');
  expect(spanText('1795229710790', 'en-GB')).toContain('2026');
  expect(spanText('5')).toBe('5');
  expect(spanText('profile-1795229710790')).toBe('profile-1795229710790');
});
