import { describe, expect, it } from 'vitest';
import { finding, place, saving } from '../testing/fixtures';
import { filtered, grouped, isOwn, sorted } from './ranking';

const ids = (list: readonly { id: string }[]): string[] => list.map((each) => each.id);

const LIST = [
  finding('small', { saving: saving(1000, { low_ns: 900 }), cost_ns: 9000, matches: 1, places: [place({ file: '/b.py' })] }),
  finding('big', { saving: saving(5000, { low_ns: 100 }), cost_ns: 5000, matches: 3, places: [place({ file: '/a.py', line: 10 })] }),
  finding('unknown', { saving: null, cost_ns: 7000, matches: 2, places: [] }),
  finding('middle', { saving: saving(3000, { low_ns: 800 }), cost_ns: 4000, matches: 2, places: [place({ file: '/a.py', line: 9 })] }),
];

describe('order', () => {
  it.each([
    ['saving', ['big', 'middle', 'small', 'unknown']],
    ['safe', ['small', 'middle', 'big', 'unknown']],
    ['cost', ['small', 'unknown', 'big', 'middle']],
    ['matches', ['big', 'middle', 'unknown', 'small']],
    ['file', ['middle', 'big', 'small', 'unknown']],
  ] satisfies ['saving' | 'safe' | 'cost' | 'matches' | 'file', string[]][])('by %s', (sort, expected) => {
    expect(ids(sorted(LIST, sort))).toEqual(expected);
  });

  it('leaves the list it was given alone, and equals in their order', () => {
    const equal = [finding('first'), finding('second')];
    expect(ids(sorted(equal, 'saving'))).toEqual(['first', 'second']);
    expect(ids(LIST)).toEqual(['small', 'big', 'unknown', 'middle']);
  });
});

describe('filter', () => {
  const found = (query: string): string[] => ids(filtered([
    finding('item', { message: '`loss.item()` waits', severity: 'high' }),
    finding('cat', { message: '`torch.cat` in a loop', places: [place({ file: '/job/model.py', line: 61, function: 'forward' })] }),
  ], query));

  it('wants all words, in any order and case', () => {
    expect(found('WAITS loss')).toEqual(['item']);
    expect(found('waits loop')).toEqual([]);
  });

  it('looks at message without its marks, file with line, function and severity', () => {
    expect(found('loss.item() waits')).toEqual(['item']);
    expect(found('model.py:61')).toEqual(['cat']);
    expect(found('forward')).toEqual(['cat']);
    expect(found('high')).toEqual(['item']);
  });

  it('keeps all for blanks', () => {
    expect(found('  ')).toEqual(['item', 'cat']);
  });
});

describe('groups', () => {
  const names = (group: 'none' | 'check' | 'file' | 'severity') => grouped([
    finding('a', { rule: 'one', severity: 'high', places: [place({ file: '/a.py' })] }),
    finding('b', { rule: 'two', severity: 'low', places: [] }),
    finding('c', { rule: 'one', severity: 'low', places: [place({ file: '/a.py', line: 7 })] }),
  ], group).map(({ key, findings }) => `${key}: ${ids(findings).join(' ')}`);

  it('stand in the order of their best finding, which they keep', () => {
    expect(names('check')).toEqual(['one: a c', 'two: b']);
    expect(names('file')).toEqual(['/a.py: a c', ': b']);
    expect(names('severity')).toEqual(['high: a', 'low: b c']);
    expect(names('none')).toEqual([': a b c']);
  });
});

it('own code is a place outside installed packages', () => {
  expect(isOwn(finding('a', { places: [place({ own_code: false }), place()] }))).toBe(true);
  expect(isOwn(finding('a', { places: [place({ own_code: false })] }))).toBe(false);
  expect(isOwn(finding('a', { places: [] }))).toBe(false);
});
