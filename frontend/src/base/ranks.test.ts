import { expect, it } from 'vitest';
import { ranksText } from './ranks';

const EIGHT = [0, 1, 2, 3, 4, 5, 6, 7];

it('names few ranks, counts many, and says when it is all of them', () => {
  expect(ranksText([3], EIGHT)).toBe('rank 3');
  expect(ranksText([1, 5], EIGHT)).toBe('ranks 1, 5');
  expect(ranksText([0, 1, 2, 3, 4], EIGHT)).toBe('5 of 8 ranks');
  expect(ranksText(EIGHT, EIGHT)).toBe('all ranks');
  expect(ranksText([], EIGHT)).toBe('all ranks');
});
