import { describe, expect, it } from 'vitest';
import { medianStep, numbersOf, rangeFault, rangeIn, rangeText } from './stepRange';

const STEPS = [3, 4, 5, 6].map((number) => ({ name: `ProfilerStep#${number}` }));

describe('a range of steps', () => {
  it('is by the numbers of the names, both ends included', () => {
    expect(rangeIn(STEPS, '4-5')).toEqual({ first: 1, last: 2 });
    expect(rangeIn(STEPS, '6')).toEqual({ first: 3, last: 3 });
    expect(rangeText(STEPS, { first: 1, last: 2 })).toBe('4-5');
    expect(rangeText(STEPS, { first: 0, last: 0 })).toBe('3');
  });

  it('holds those of its steps that there are', () => {
    expect(rangeIn(STEPS, '1-3')).toEqual({ first: 0, last: 0 });
    expect(rangeIn(STEPS, '7-9')).toBeNull();
  });

  it('is by position where names have no number', () => {
    const steps = [{ name: 'Optimizer.step#SGD.step' }, { name: 'Optimizer.step#SGD.step' }];
    expect(numbersOf(steps)).toEqual([1, 2]);
    expect(rangeIn(steps, '2')).toEqual({ first: 1, last: 1 });
  });

  it('is none in any other form', () => {
    for (const text of ['', '7-3', '3 - 7', '3-', '-3', 'x', '3-7-9', '1e3', '1234567890123456']) expect(rangeIn(STEPS, text)).toBeNull();
  });

  it('says what is wrong with it', () => {
    expect(rangeFault('', STEPS)).toBe('');
    expect(rangeFault('3-4', STEPS)).toBe('');
    expect(rangeFault('5-', STEPS)).toBe('Write 3-7 for the steps 3 to 7, or 5 for one step.');
    expect(rangeFault('9', STEPS)).toBe('There are the steps 3-6.');
    expect(rangeFault('9', [])).toBe('There are no steps.');
    expect(rangeFault('9', null)).toBe('');
  });
});

describe('the median step', () => {
  it('is the middle one of those that are not odd', () => {
    const steps = [{ duration_ns: 900, oddity: 'warmup' }, { duration_ns: 30 }, { duration_ns: 10 }, { duration_ns: 20 }, { duration_ns: 800, oddity: 'outlier' }];
    expect(medianStep(steps)).toBe(3);
  });

  it('is one of the odd ones where there are no others', () => {
    expect(medianStep([{ duration_ns: 20, oddity: 'outlier' }, { duration_ns: 10, oddity: 'outlier' }])).toBe(1);
  });
});
