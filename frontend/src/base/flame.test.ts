import { describe, expect, it } from 'vitest';
import { flame } from '../testing/fixtures';
import { cellsOf, changeOf, commonOf, found, heldBy, ownOf, paired, pathTo, totalsOf, treeOf, weightsOf, widthsOf } from './flame';

const FLAME = flame();
const TREE = treeOf(FLAME);
const totals = (weight: Parameters<typeof ownOf>[1], entry: number | null = null): number[] => totalsOf(TREE.parent, ownOf(FLAME, weight, entry));

describe('the merged calls', () => {
  it('weigh what lies inside them', () => {
    expect(totals('account')).toEqual([100, 90, 60, 60, 30, 10]);
    expect(totals('device')).toEqual([60, 60, 60, 60, 0, 0]);
    expect(totals('idle')).toEqual([40, 30, 0, 0, 30, 10]);
    expect(totals('host')).toEqual([50, 50, 20, 0, 0, 0]);
    expect(totals('account', 1)).toEqual([40, 30, 0, 0, 30, 10]);
    expect(weightsOf(FLAME)).toEqual(['account', 'device', 'idle', 'host']);
  });

  it('are bars side by side, the heaviest first, and never wider than what calls them', () => {
    const cells = cellsOf(TREE, totals('account'), 0);
    expect(cells.map(({ node, depth }) => [node, depth])).toEqual([[0, 0], [1, 1], [5, 1], [2, 2], [4, 2], [3, 3]]);
    expect(cells.find(({ node }) => node === 4)).toEqual({ node: 4, depth: 2, from: 0.6, to: expect.closeTo(0.9) });
    expect(cellsOf(TREE, totals('account'), 2).map(({ node, from, to }) => [node, from, to])).toEqual([[2, 0, 1], [3, 0, 1]]);
    expect(cellsOf(TREE, totals('bytes'), 0)).toEqual([]);
  });

  it('have a way to each of them, and one node around several', () => {
    expect(pathTo(TREE, 3)).toEqual([0, 1, 2, 3]);
    expect(commonOf(TREE, [3, 4])).toBe(1);
    expect(commonOf(TREE, [3, 5])).toBe(0);
    expect(commonOf(TREE, [])).toBe(0);
  });

  it('are found by name and file, and what is found inside another match counts once', () => {
    expect([...found(TREE, 'MM')]).toEqual([2, 3]);
    expect([...found(TREE, 'train.py')]).toEqual([1]);
    expect([...found(TREE, ' ')]).toEqual([]);
    expect(heldBy(TREE, totals('account'), found(TREE, 'mm'))).toBe(60);
    expect(heldBy(TREE, totals('account'), new Set([3, 4]))).toBe(90);
  });
});

describe('two recordings', () => {
  const other = flame({ frames: [...FLAME.frames.slice(0, 3), { kind: 'kernel', name: 'tgemm', entry: 0 }, ...FLAME.frames.slice(4)], steps: 1 });

  it('are paired by path, per step', () => {
    const { tree, before, after } = paired(FLAME, other, 'account');
    const names = tree.frames.map(({ name }) => name);
    expect(names).toEqual(['All', 'step', 'aten::mm', 'gemm_mm', 'The host is late', 'The host is late', 'tgemm']);
    expect(before).toEqual([0, 0, 0, 30, 15, 5, 0]);
    expect(after).toEqual([0, 0, 0, 0, 30, 10, 60]);
    expect(totalsOf(tree.parent, before)[0]).toBe(50);
    expect(widthsOf({ before, after })).toEqual([0, 0, 0, 30, 30, 10, 60]);
  });

  it('have no difference where they are one', () => {
    const { before, after } = paired(FLAME, FLAME, 'host');
    expect(after).toEqual(before);
  });

  it('change from all gone to all new', () => {
    expect([changeOf(4, 0), changeOf(4, 2), changeOf(3, 3), changeOf(0, 3)]).toEqual([-1, -0.5, 0, 1]);
  });
});
