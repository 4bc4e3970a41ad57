import { describe, expect, it } from 'vitest';
import { startClosed, treeMove, visibleRows, type TreeRow } from './moduleTree';

/** a(b(c d) e) f */
const ROWS: TreeRow[] = [
  { parent: null, last: 4, depth: 0 }, { parent: 0, last: 3, depth: 1 }, { parent: 1, last: 2, depth: 2 },
  { parent: 1, last: 3, depth: 2 }, { parent: 0, last: 4, depth: 1 }, { parent: null, last: 5, depth: 0 },
];
const none = new Set<number>();

describe('rows in sight', () => {
  it('are all of an open tree', () => {
    expect(visibleRows(ROWS, none)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(visibleRows([], none)).toEqual([]);
  });

  it('leave out what is inside closed rows', () => {
    expect(visibleRows(ROWS, new Set([1]))).toEqual([0, 1, 4, 5]);
    expect(visibleRows(ROWS, new Set([0, 1]))).toEqual([0, 5]);
    expect(visibleRows(ROWS, new Set([5, 2]))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('are the first levels at the start', () => {
    expect([...startClosed(ROWS, 1)]).toEqual([1]);
    expect([...startClosed(ROWS, 2)]).toEqual([]);
  });
});

describe('keys', () => {
  const move = (at: number, key: string, closed = none) => treeMove(ROWS, closed, at, key);

  it('go up and down among the rows in sight, and stay inside', () => {
    expect([move(0, 'ArrowDown'), move(1, 'ArrowDown', new Set([1])), move(5, 'ArrowDown'), move(0, 'ArrowUp'), move(3, 'Home'), move(3, 'End')])
      .toEqual([{ to: 1 }, { to: 4 }, { to: 5 }, { to: 0 }, { to: 0 }, { to: 5 }]);
  });

  it('open and go in, close and go out', () => {
    expect([move(1, 'ArrowRight', new Set([1])), move(1, 'ArrowRight'), move(2, 'ArrowRight')]).toEqual([{ open: 1 }, { to: 2 }, null]);
    expect([move(1, 'ArrowLeft'), move(3, 'ArrowLeft'), move(1, 'ArrowLeft', new Set([1])), move(5, 'ArrowLeft')])
      .toEqual([{ close: 1 }, { to: 1 }, { to: 0 }, null]);
    expect([move(0, 'Enter'), move(0, ' ', new Set([0])), move(5, 'Enter'), move(0, 'x')]).toEqual([{ close: 0 }, { open: 0 }, null, null]);
  });
});
