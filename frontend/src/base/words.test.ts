import { expect, it } from 'vitest';
import { timeUnit } from './units';
import { linesText, matchesText, perWhat, precisionText, rangeText } from './words';

it('never calls a definition the calling line', () => {
  expect(precisionText('definition')).toContain('The call is inside this function');
});

it('counts per trace where there are no steps', () => {
  expect([perWhat('profiler_step'), perWhat('whole_trace'), perWhat('none')]).toEqual(['step', 'trace', 'trace']);
});

it('leaves out a range without width', () => {
  const unit = timeUnit(2_000_000);
  expect(rangeText({ low_ns: 1_000_000, high_ns: 2_500_000 }, unit)).toBe('1–2.5');
  expect(rangeText({ low_ns: 1_000_000, high_ns: 1_000_100 }, unit)).toBe('');
});

it('names one line, a statement over several, and lines that are as likely', () => {
  expect(linesText({ line: 7 })).toBe('line 7');
  expect(linesText({ line: 7, end_line: 9, ties: [] })).toBe('lines 7–9');
  expect(linesText({ line: 3, end_line: 5, ties: [3, 5] })).toBe('one of lines 3, 5');
  expect(linesText({ line: 25, end_line: 28, ties: [25, 26, 27, 28] })).toBe('one of lines 25–28');
  expect(precisionText('aligned', [3, 5])).toContain('one of lines 3, 5');
  expect(precisionText('definition', [], { of: 'forward', also: [] })).toContain('torch.compile compiled this function');
  expect(precisionText('exact', [], { of: 'backward', also: [] })).toContain('the compiled kernel computes');
});

it.each([[3, '3 per step'], [1, '1 per step'], [0.2, 'one in 5 steps'], [0.4, 'one in 2.5 steps'], [0, '']])('says how often %d matches per step occur', (perStep, text) => {
  expect(matchesText(perStep)).toBe(text);
});
