/** Positions of lanes on a timeline, and the bar below a point. */

import { lengthOf, type Span } from './timelineWindow';

export interface LaneLike { kind: 'steps' | 'thread' | 'stream'; name: string; rows: number; events: number; deeper: number }

/**
 * A lane's rows `first` to `first + rows` at `y`; the others are not visible. `isFolded` if it can be folded or
 * unfolded. Pinned lanes come first and stay in place when the others scroll.
 */
export interface Box { lane: number; name: string; kind: LaneLike['kind']; y: number; first: number; rows: number; isFolded?: boolean; isPinned?: boolean }

/** Bars as the server sends them: one entry each per column. */
export interface Bars {
  lane: readonly number[]; depth: readonly number[]; start_ns: readonly number[]; duration_ns: readonly number[]; busy_ns: readonly number[];
  events: readonly number[]; id: readonly number[]; name: readonly number[]; category: readonly number[]; marked: readonly number[];
}

/** Bars of a window, and the part of it that they are drawn in: `clip` is the area without finer pieces. */
export interface Piece { bars: Bars; names: readonly string[]; clip: Span }

export interface Arrows {
  from_lane: readonly number[]; from_depth: readonly number[]; from_ns: readonly number[];
  to_lane: readonly number[]; to_depth: readonly number[]; to_ns: readonly number[];
}

export interface EventLike { lane: number; depth: number; arrows: Arrows }

export const ROW_PX = 14;
export const AXIS_PX = 20;
export const LANE_GAP_PX = 8;

const FEW_ROWS = 12;

/**
 * All lanes below each other, those in `folded` with only their first row, those in `pinned` first. Streams come before
 * threads if they are few: threads may be a hundred rows high.
 */
export function allBoxes(lanes: readonly LaneLike[], folded: ReadonlySet<number> = new Set(), pinned: ReadonlySet<number> = new Set()): Box[] {
  const streams = lanes.filter(({ kind }) => kind === 'stream').reduce((sum, { rows }) => sum + rows, 0);
  const rank = { steps: 0, stream: streams <= FEW_ROWS ? 1 : 3, thread: 2 };
  const order = lanes.map(({ kind, rows }, lane) => ({ lane, first: 0, rows, rank: pinned.has(lane) ? -1 : rank[kind] })).toSorted((one, other) => one.rank - other.rank);
  const boxes = stacked(order.map((each) => ({ ...each, rows: folded.has(each.lane) ? Math.min(each.rows, 1) : each.rows })), lanes);
  return boxes.map((box) => ({
    ...box, ...((lanes[box.lane]?.rows ?? 0) > 1 && { isFolded: folded.has(box.lane) }), ...(pinned.has(box.lane) && { isPinned: true }),
  }));
}

const MOST_HELD = 0.6;

/**
 * The end of the pinned lanes, below which the others scroll. Lanes that would take most of the height scroll with the
 * others.
 */
export function heldUntil(boxes: readonly Box[], height: number): number {
  const end = heightOf(boxes.filter(({ isPinned }) => isPinned));
  return end <= MOST_HELD * height ? end : AXIS_PX;
}

/** Vertical offset of a box by scrolling. */
export const scrolledBy = (box: Box, held: number, scrolled: number): number => (box.y < held ? 0 : scrolled);

const OWN_ROWS = { alone: 7, withOthers: 5 }; // as many as fit into a strip of 160 pixels
const OTHER_ROWS = 2;

/** The lanes related to an event, each a few rows high: steps, its own, those that its arrows connect. */
export function boxesAround(event: EventLike, lanes: readonly LaneLike[]): Box[] {
  const { arrows } = event;
  const depths = new Map<number, number>();
  const steps = lanes.findIndex(({ kind }) => kind === 'steps');
  if (steps >= 0) depths.set(steps, 0);
  arrows.to_lane.forEach((lane, at) => depths.set(lane, Math.min(depths.get(lane) ?? Infinity, arrows.to_depth[at] ?? 0)));
  arrows.from_lane.forEach((lane, at) => depths.set(lane, arrows.from_depth[at] ?? 0));
  depths.set(event.lane, event.depth);
  const own = depths.size > (steps >= 0 ? 2 : 1) ? OWN_ROWS.withOthers : OWN_ROWS.alone;
  const wanted = [...depths].toSorted(([one], [other]) => one - other).map(([lane, depth]) => {
    const all = lanes[lane]?.rows ?? 0;
    const isOwn = lane === event.lane && lanes[lane]?.kind === 'thread';
    const rows = Math.min(all, isOwn ? own : OTHER_ROWS);
    const before = isOwn ? (own - 1) / 2 : rows - 1;
    return { lane, rows, first: Math.min(Math.max(depth - before, 0), all - rows) };
  });
  return stacked(wanted, lanes);
}

function stacked(wanted: readonly { lane: number; first: number; rows: number }[], lanes: readonly LaneLike[]): Box[] {
  let y = AXIS_PX;
  const boxes: Box[] = [];
  for (const { lane, first, rows } of wanted) {
    const { name = '', kind = 'thread' } = lanes[lane] ?? {};
    if (rows <= 0) continue;
    boxes.push({ lane, name, kind, y, first, rows });
    y += rows * ROW_PX + LANE_GAP_PX;
  }
  return boxes;
}

/** Height of all of them. */
export function heightOf(boxes: readonly Box[]): number {
  const last = boxes.at(-1);
  return last ? last.y + last.rows * ROW_PX + LANE_GAP_PX : AXIS_PX;
}

/** Top of a row; null if it is not visible. */
export function rowTop(box: Box | undefined, depth: number): number | null {
  if (!box || depth < box.first || depth >= box.first + box.rows) return null;
  return box.y + (depth - box.first) * ROW_PX;
}

/** The lanes whose boxes reach into a part of the height, in the server's form. */
export const lanesIn = (boxes: readonly Box[], top: number, bottom: number): number[] =>
  boxes.filter((box) => box.y < bottom && box.y + box.rows * ROW_PX > top).map((box) => box.lane);

/** One bar, by its position. */
export interface Bar {
  lane: number; depth: number; start_ns: number; duration_ns: number; busy_ns: number; events: number; id: number; name: string;
  category: number; marked: number;
}

export function barAt({ bars, names }: Piece, at: number): Bar {
  const of = (column: readonly number[]): number => column[at] ?? 0;
  return {
    lane: of(bars.lane), depth: of(bars.depth), start_ns: of(bars.start_ns), duration_ns: of(bars.duration_ns), busy_ns: of(bars.busy_ns),
    events: of(bars.events), id: of(bars.id), name: names[of(bars.name)] ?? '', category: of(bars.category), marked: of(bars.marked),
  };
}

/** The bar at a time in a row, at most `slack` away, since a bar may be thinner than a pixel. */
export function barUnder(pieces: readonly Piece[], lane: number, depth: number, time: number, slack: number): Bar | null {
  let best: { piece: Piece; at: number; distance: number } | null = null;
  for (const piece of pieces) {
    const { bars, clip } = piece;
    if (time < clip.from - slack || time > clip.to + slack) continue;
    for (let at = 0; at < bars.lane.length; at += 1) {
      if (bars.lane[at] !== lane || bars.depth[at] !== depth) continue;
      const start = bars.start_ns[at] ?? 0;
      const distance = Math.max(start - time, time - start - (bars.duration_ns[at] ?? 0), 0);
      if (distance <= slack && (!best || distance < best.distance)) best = { piece, at, distance };
    }
  }
  return best && barAt(best.piece, best.at);
}

/** The next single event of a row after a time, or the previous one. */
export function neighbourOf(pieces: readonly Piece[], lane: number, depth: number, from: number, by: 1 | -1): Bar | null {
  let best: Bar | null = null;
  for (const piece of pieces) {
    const { bars } = piece;
    for (let at = 0; at < bars.lane.length; at += 1) {
      if (bars.lane[at] !== lane || bars.depth[at] !== depth || (bars.id[at] ?? -1) < 0) continue;
      const start = bars.start_ns[at] ?? 0;
      if ((start - from) * by <= 0) continue;
      if (!best || (start - best.start_ns) * by < 0) best = barAt(piece, at);
    }
  }
  return best;
}

const GUTTER = { wide: 112, narrow: 76 };
const NARROW_PX = 560;

/** Width of the names beside the time axis. */
export const gutterOf = (width: number): number => (width < NARROW_PX ? GUTTER.narrow : GUTTER.wide);

/** Pixels from the left edge, of a window that is `width` pixels wide. */
export const pixelOf = (time: number, window: Span, width: number): number => ((time - window.from) * width) / lengthOf(window);
export const timeOf = (pixel: number, window: Span, width: number): number => window.from + (pixel * lengthOf(window)) / width;
