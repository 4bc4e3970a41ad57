import { describe, expect, it } from 'vitest';
import cases from '../../../tests/words/units_cases.json';
import { bytes, columnBytes, columnInUnit, columnShare, columnSigned, columnTime, count, inUnit, moment, nanoseconds, plural, share, timeUnit, partShare } from './units';

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

describe('in a column', () => {
  const DIGITS = /^[−+]?(\d\.\d\d|\d\d\.\d|\d{3})\d* (µs|ms|s|KiB|MiB|GiB|%)$/;

  it.each([[1, '1.00 ms'], [6.2, '6.20 ms'], [83, '83.0 ms'], [830, '830 ms'], [9.996, '10.0 ms'], [99.96, '100 ms'], [999.6, '1.00 s']])('%f ms is %s', (ms, text) => {
    expect(columnTime(ms * 1e6)).toBe(text);
  });

  it('numbers of one unit have three digits, whatever they end with', () => {
    for (let value = 1000; value < 3_000_000; value += 997) {
      expect(columnTime(value)).toMatch(DIGITS);
      expect(columnSigned(-value)).toMatch(DIGITS);
      expect(columnBytes(value * 2)).toMatch(DIGITS);
    }
    for (let value = 1; value <= 100; value += 0.01) expect(columnShare(value / 100)).toMatch(DIGITS);
  });

  it('is the same number as in a sentence', () => {
    const columns: Record<string, (value: number) => string> = { bytes: columnBytes, nanoseconds: columnTime, share: columnShare };
    const read = (text: string) => [Number.parseFloat(text) || 0, text.split(' ')[1]];
    const told = cases.map(({ kind, value, text }) => ({ column: columns[kind]?.(value) ?? '', text })).filter(({ column }) => !column.startsWith('<'));
    expect(told.map(({ column }) => read(column))).toEqual(told.map(({ text }) => read(text)));
  });

  it('small shares keep their two decimals, and what cannot be divided has none', () => {
    expect([0, 1e-9, 0.007, 0.036, 0.12, 1].map(columnShare)).toEqual(['0 %', '<0.01 %', '0.70 %', '3.60 %', '12.0 %', '100 %']);
    expect([0, 7, 999].map(columnTime)).toEqual(['0 ns', '7 ns', '999 ns']);
    expect([0, 7, 1023, 1024].map(columnBytes)).toEqual(['0 B', '7 B', '1023 B', '1.00 KiB']);
    expect([18_000_000, 300_000, 900, 0].map((value) => columnInUnit(value, timeUnit(18e6)))).toEqual(['18.0', '0.30', '<0.01', '0']);
  });
});
