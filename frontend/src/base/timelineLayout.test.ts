import { expect, it } from 'vitest';
import { allBoxes, AXIS_PX, barUnder, boxesAround, heightOf, heldUntil, LANE_GAP_PX, lanesIn, neighbourOf, pixelOf, ROW_PX, rowTop, scrolledBy, timeOf, type Bars, type LaneLike, type Piece } from './timelineLayout';

const lane = (kind: LaneLike['kind'], rows: number): LaneLike => ({ kind, rows, name: kind, events: rows, deeper: 0 });
const LANES = [lane('steps', 1), lane('thread', 30), lane('thread', 3), lane('stream', 1)];
const NONE = { from_lane: [], from_depth: [], from_ns: [], to_lane: [], to_depth: [], to_ns: [] };

/** Bars of one row of lane 1 at depth 2, as start and duration; ids count from 0. */
function piece(...spans: [number, number][]): Piece {
  const same = (value: number): number[] => spans.map(() => value);
  const bars: Bars = {
    lane: same(1), depth: same(2), start_ns: spans.map(([start]) => start), duration_ns: spans.map(([, length]) => length),
    busy_ns: same(0), events: same(1), id: spans.map((_, at) => at), name: same(0), category: same(1), marked: same(0),
  };
  return { bars, names: ['aten::mm'], clip: { from: 0, to: 10_000 } };
}

it('stands all lanes below each other', () => {
  const boxes = allBoxes(LANES);
  expect(boxes.map(({ lane: number }) => number)).toEqual([0, 3, 1, 2]); // one stream is short, and drawn where it is visible
  expect(boxes.map(({ y }) => y)).toEqual([AXIS_PX, AXIS_PX + ROW_PX + LANE_GAP_PX, AXIS_PX + 2 * ROW_PX + 2 * LANE_GAP_PX, AXIS_PX + 32 * ROW_PX + 3 * LANE_GAP_PX]);
  expect(heightOf(boxes)).toBe(AXIS_PX + 35 * ROW_PX + 4 * LANE_GAP_PX);
  expect(lanesIn(boxes, 0, AXIS_PX + ROW_PX + LANE_GAP_PX + 1)).toEqual([0, 3]);
  expect(allBoxes([...LANES, lane('stream', 20)]).map(({ lane: number }) => number)).toEqual([0, 1, 2, 3, 4]);
});

it('leaves one row of a folded lane, and folds none that has only one', () => {
  const boxes = allBoxes(LANES, new Set([1, 3]));
  expect(boxes.map(({ lane: number, rows, isFolded }) => [number, rows, isFolded])).toEqual([[0, 1, undefined], [3, 1, undefined], [1, 1, true], [2, 3, false]]);
  expect(heightOf(boxes)).toBe(heightOf(allBoxes(LANES)) - 29 * ROW_PX);
  expect(rowTop(boxes[2], 1)).toBeNull();
});

it('stands pinned lanes first and holds them, unless they take most of the height', () => {
  const boxes = allBoxes(LANES, new Set(), new Set([2]));
  expect(boxes.map(({ lane: number, isPinned }) => [number, isPinned])).toEqual([[2, true], [0, undefined], [3, undefined], [1, undefined]]);
  const held = heldUntil(boxes, 400);
  expect(held).toBe(AXIS_PX + 3 * ROW_PX + LANE_GAP_PX);
  expect(boxes.map((box) => scrolledBy(box, held, 50))).toEqual([0, 50, 50, 50]);
  expect(heldUntil(boxes, 80)).toBe(AXIS_PX); // no room for others
  expect(heldUntil(allBoxes(LANES), 400)).toBe(AXIS_PX);
});

it('shows of an event the rows around it and the stream that it launches on', () => {
  const arrows = { ...NONE, from_lane: [1], from_depth: [21], from_ns: [5], to_lane: [3], to_depth: [0], to_ns: [9] };
  const boxes = boxesAround({ lane: 1, depth: 20, arrows }, LANES);
  expect(boxes.map(({ lane: number, first, rows }) => [number, first, rows])).toEqual([[0, 0, 1], [1, 18, 5], [3, 0, 1]]);
  expect(heightOf(boxes)).toBeLessThanOrEqual(160);
});

it('does not leave the lane where the event is at its edge', () => {
  expect(boxesAround({ lane: 1, depth: 29, arrows: NONE }, LANES).at(-1)).toMatchObject({ first: 23, rows: 7 });
  expect(boxesAround({ lane: 2, depth: 0, arrows: NONE }, LANES).at(-1)).toMatchObject({ first: 0, rows: 3 });
});

it('finds rows in sight only', () => {
  const box = { lane: 1, name: 'thread', kind: 'thread' as const, y: 42, first: 0, rows: 30 };
  expect(rowTop(box, 2)).toBe(42 + 2 * ROW_PX);
  expect(rowTop({ ...box, first: 3 }, 2)).toBeNull();
  expect(rowTop(undefined, 2)).toBeNull();
});

it('finds the bar under a point, and a thin one beside it', () => {
  const pieces = [piece([100, 50], [200, 1])];
  expect(barUnder(pieces, 1, 2, 120, 0)).toMatchObject({ id: 0, name: 'aten::mm' });
  expect(barUnder(pieces, 1, 2, 205, 10)).toMatchObject({ id: 1 });
  expect(barUnder(pieces, 1, 2, 180, 10)).toBeNull();
  expect(barUnder(pieces, 1, 3, 120, 10)).toBeNull();
});

it('walks along a row, over the edge of a piece', () => {
  const pieces = [piece([100, 50], [200, 1]), piece([300, 5], [400, 5])];
  expect(neighbourOf(pieces, 1, 2, 200, 1)?.start_ns).toBe(300);
  expect(neighbourOf(pieces, 1, 2, 300, -1)?.start_ns).toBe(200);
  expect(neighbourOf(pieces, 1, 2, 400, 1)).toBeNull();
});

it('goes from times to pixels and back', () => {
  const window = { from: 1000, to: 3000 };
  expect(pixelOf(1500, window, 400)).toBe(100);
  expect(timeOf(100, window, 400)).toBe(1500);
});
