import { describe, expect, it } from 'vitest';
import cases from '../../../tests/units_cases.json';
import { bytes, count, inUnit, moment, nanoseconds, plural, share, timeUnit, partShare } from './units';

const FORMATTERS: Record<string, (value: number) => string> = { bytes, nanoseconds, share };

describe('the table of cases that Python is held to as well', () => {
  it.each(cases)('$kind $value is $text', ({ kind, value, text }) => {
    expect(FORMATTERS[kind]?.(value)).toBe(text);
  });
});

it('never shows 1000 of a unit below the largest', () => {
  for (let value = 999_000; value <= 1_000_500; value += 1) expect(nanoseconds(value)).not.toContain('1000 µs');
});

describe('one unit for a column', () => {
  it('is that of the biggest value', () => {
    expect(timeUnit(18_400_000)).toEqual({ name: 'ms', ns: 1_000_000 });
    expect(timeUnit(0)).toEqual({ name: 'ns', ns: 1 });
    expect(timeUnit(999_600)).toEqual({ name: 'ms', ns: 1_000_000 });
  });

  it('keeps small values comparable', () => {
    const unit = timeUnit(18_400_000);
    expect([18_400_000, 310_000, 12_000, 900, 0].map((value) => inUnit(value, unit))).toEqual(['18.4', '0.31', '0.01', '<0.01', '0']);
  });
});

it('tells neighbouring moments apart', () => {
  expect(moment(1_234_567_890)).toBe('1,234.568 ms');
  expect(moment(0)).toBe('0.000 ms');
});

it('counts in words', () => {
  expect(count(56451)).toBe('56,451');
  expect(count(4.3333)).toBe('4.3');
  expect([plural(1, 'match', 'matches'), plural(2, 'match', 'matches'), plural(0, 'step')]).toEqual(['1 match', '2 matches', '0 steps']);
});

it('never says nothing of a part that is there', () => {
  expect([0, 1e-9, 0.00005, 0.1264].map(partShare)).toEqual(['0 %', '<0.01 %', '0.01 %', '12.6 %']);
});
