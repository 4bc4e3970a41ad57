/** Draws a timeline on a canvas: only the visible part of the window. */

import { pixelOf, ROW_PX, rowTop, scrolledBy, AXIS_PX, type Arrows, type Bar, type Box, type Piece } from '../base/timelineLayout';
import { lengthOf, timeMarks, type Span } from '../base/timelineWindow';
import { nanoseconds, plural } from '../base/units';
import type { Colours } from './timelineColours';

export interface Scene {
  width: number;
  height: number;
  /** Width of the names of the lanes. */
  gutter: number;
  /** Pixels that the lanes below `held` are scrolled down by. */
  scrolled: number;
  /** End of the pinned lanes. */
  held: number;
  window: Span;
  boxes: readonly Box[];
  pieces: readonly Piece[];
  arrows: readonly Arrows[];
  selected: Pick<Bar, 'lane' | 'depth' | 'start_ns' | 'duration_ns'> | null;
  /** True if events that no finding has matched are grey. */
  marking: boolean;
  range: Span | null;
  /** An explained gap. */
  gap: Span | null;
  /** True if lanes can be pinned, so that they have a pin. */
  pins: boolean;
  colours: Colours;
}

export const PIN_PX = 16;

type Context = CanvasRenderingContext2D;

const LETTER_PX = 6.1; // of the 10 px monospaced font
const LEAST_TEXT_PX = 30;
export const FONT = '10px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace';

export function draw(context: Context, scene: Scene): void {
  const { width, height, colours, gutter } = scene;
  context.globalAlpha = 1;
  context.fillStyle = colours.background;
  context.fillRect(0, 0, width, height);
  drawGrid(context, scene);
  for (const layer of layersOf(scene)) {
    context.save();
    context.beginPath();
    context.rect(0, layer.top, width, layer.bottom - layer.top);
    context.clip();
    drawNames(context, layer);
    context.beginPath();
    context.rect(gutter, layer.top, width - gutter, layer.bottom - layer.top);
    context.clip();
    context.translate(gutter, -layer.scrolled);
    drawBars(context, layer);
    drawSelection(context, layer);
    context.restore();
  }
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS_PX, width - gutter, height - AXIS_PX);
  context.clip();
  context.translate(gutter, 0);
  for (const arrows of scene.arrows) drawArrows(context, scene, arrows);
  context.restore();
  context.fillStyle = colours.line;
  context.fillRect(gutter - 1, 0, 1, height);
  if (scene.held > AXIS_PX) context.fillRect(0, scene.held - 3, width, 2);
  for (const span of [scene.gap, scene.range]) if (span) drawRange(context, scene, span);
}

/** A part of the height with its lanes. */
interface Layer extends Scene { top: number; bottom: number }

/** The pinned lanes, and those that scroll below them. */
function layersOf(scene: Scene): Layer[] {
  const { boxes, held, height } = scene;
  const rest = { ...scene, boxes: boxes.filter(({ y }) => y >= held), top: held, bottom: height };
  return held > AXIS_PX ? [{ ...scene, boxes: boxes.filter(({ y }) => y < held), scrolled: 0, top: AXIS_PX, bottom: held }, rest] : [rest];
}

/** Times along the top, and a line down from each. */
function drawGrid(context: Context, { width, height, gutter, window, colours }: Scene): void {
  const plot = width - gutter;
  const { at, step } = timeMarks(window, plot);
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const time of at) {
    const x = gutter + Math.round(pixelOf(time, window, plot)) + 0.5;
    context.fillStyle = colours.soft;
    context.fillRect(x - 0.5, AXIS_PX, 1, height);
    context.fillStyle = colours.muted;
    context.fillText(markText(time, step), x + 3, AXIS_PX / 2);
  }
  context.fillStyle = colours.line;
  context.fillRect(gutter, AXIS_PX - 1, plot, 1);
}

/** As many digits as distinguish one mark from the next. */
export function markText(time: number, step: number): string {
  const most = Math.max(time, step);
  const [unit, ns] = most >= 1e9 ? ['s', 1e9] : most >= 1e6 ? ['ms', 1e6] : most >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / Number(ns)) - 1e-9));
  return `${(time / Number(ns)).toFixed(Math.min(digits, 9))} ${unit}`;
}

function drawBars(context: Context, scene: Layer): void {
  const { width, gutter, window } = scene;
  const plot = width - gutter;
  const scale = plot / lengthOf(window);
  const boxes: (Box | undefined)[] = [];
  for (const box of scene.boxes) boxes[box.lane] = box;
  const hatch = scene.marking ? hatchOf(context, scene.colours) : null;
  context.font = FONT;
  context.textBaseline = 'middle';
  for (const piece of scene.pieces) {
    const { bars, clip } = piece;
    const [clipFrom, clipTo] = [Math.max((clip.from - window.from) * scale, 0), Math.min((clip.to - window.from) * scale, plot)];
    if (clipTo <= clipFrom) continue;
    for (let at = 0; at < bars.lane.length; at += 1) {
      const box = boxes[bars.lane[at] ?? -1];
      const depth = bars.depth[at] ?? 0;
      if (!box || depth < box.first || depth >= box.first + box.rows) continue;
      const [left, right] = bars.events[at] === 1 ? [0, plot] : [clipFrom, clipTo]; // an event is drawn whole, wherever tiles meet
      const start = ((bars.start_ns[at] ?? 0) - window.from) * scale;
      const end = start + (bars.duration_ns[at] ?? 0) * scale;
      if (start >= right || Math.max(end, start + 1) <= left) continue;
      const from = Math.max(start, left);
      const y = box.y + (depth - box.first) * ROW_PX;
      if (y - scene.scrolled > scene.bottom || y + ROW_PX - scene.scrolled < scene.top) continue;
      drawBar(context, scene, hatch, piece, at, from, y, Math.max(Math.min(end, right) - from, 1));
    }
  }
  context.globalAlpha = 1;
}

/** A block is paler if its events take less of its time. */
function drawBar(context: Context, scene: Scene, hatch: CanvasPattern | null, piece: Piece, at: number, x: number, y: number, width: number): void {
  const { bars } = piece;
  const { colours } = scene;
  const events = bars.events[at] ?? 1;
  const category = bars.category[at] ?? 0;
  const isMarked = scene.marking && (bars.marked[at] ?? 0) > 0;
  const busy = events > 1 ? 0.35 + (0.65 * (bars.busy_ns[at] ?? 0)) / Math.max(bars.duration_ns[at] ?? 1, 1) : 1;
  context.globalAlpha = isMarked ? 1 : Math.min(busy, 1);
  context.fillStyle = isMarked ? colours.accent : scene.marking ? colours.grey : colours.fills[category] ?? colours.grey;
  const drawn = width > 3 ? width - 0.6 : width; // a hair's breadth between neighbours
  context.fillRect(x, y, drawn, ROW_PX - 1);
  if (isMarked && hatch && width >= 3) {
    context.fillStyle = hatch;
    context.fillRect(x, y, drawn, ROW_PX - 1);
  }
  if (width < LEAST_TEXT_PX) return;
  context.globalAlpha = 1;
  const letters = Math.floor((width - 6) / LETTER_PX);
  const text = events > 1 ? plural(events, 'event') : piece.names[bars.name[at] ?? -1] ?? '';
  context.fillStyle = isMarked ? colours.onAccent : scene.marking || events > 1 ? colours.text : colours.letters[category] ?? colours.text;
  if (isMarked && hatch) {
    const room = Math.min(text.length, letters) * LETTER_PX + 4;
    context.fillStyle = colours.accent;
    context.fillRect(x + 1, y, Math.min(room, drawn - 1), ROW_PX - 1); // no hatching behind letters
    context.fillStyle = colours.onAccent;
  }
  context.fillText(text.length <= letters ? text : `${text.slice(0, Math.max(letters - 1, 0))}…`, x + 3, y + ROW_PX / 2);
}

let hatching: { colour: string; pattern: CanvasPattern | null } | null = null;

/** Slanted lines, so that matched events differ by more than their colour. */
function hatchOf(context: Context, { shade }: Colours): CanvasPattern | null {
  if (hatching?.colour === shade) return hatching.pattern;
  const tile = document.createElement('canvas');
  tile.width = tile.height = 6;
  const pen = tile.getContext('2d');
  if (!pen) return null;
  pen.strokeStyle = shade;
  pen.globalAlpha = 0.5;
  pen.lineWidth = 1.2;
  for (const at of [-6, 0, 6]) {
    pen.moveTo(at, 6);
    pen.lineTo(at + 6, 0);
  }
  pen.stroke();
  hatching = { colour: shade, pattern: context.createPattern(tile, 'repeat') };
  return hatching.pattern;
}

/** From launches to what they launched. */
function drawArrows(context: Context, { boxes, window, width, gutter, colours, held, scrolled }: Scene, arrows: Arrows): void {
  const plot = width - gutter;
  const boxOf = new Map(boxes.map((box) => [box.lane, box]));
  const topOf = (lane: number | undefined, depth: number | undefined): number | null => {
    const box = boxOf.get(lane ?? -1);
    const top = rowTop(box, depth ?? 0);
    if (!box || top === null) return null;
    const by = scrolledBy(box, held, scrolled);
    return box.y < held ? top : Math.max(top - by, held - ROW_PX); // behind the pinned lanes: at their end
  };
  context.strokeStyle = context.fillStyle = colours.text;
  context.lineWidth = 1;
  arrows.to_ns.forEach((to, at) => {
    const [top, bottom] = [topOf(arrows.from_lane[at], arrows.from_depth[at]), topOf(arrows.to_lane[at], arrows.to_depth[at])];
    const [x1, x2] = [pixelOf(arrows.from_ns[at] ?? 0, window, plot), pixelOf(to, window, plot)];
    if (top === null || bottom === null || Math.max(x1, x2) < 0 || Math.min(x1, x2) > plot) return;
    const down = bottom > top ? 1 : -1;
    const [y1, y2] = down > 0 ? [top + ROW_PX - 1, bottom] : [top, bottom + ROW_PX - 1];
    context.globalAlpha = 0.55;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1, y1 + down * 14, x2, y2 - down * 14, x2, y2 - down * 2);
    context.stroke();
    context.beginPath();
    context.moveTo(x2 - 3, y2 - down * 5);
    context.lineTo(x2 + 3, y2 - down * 5);
    context.lineTo(x2, y2);
    context.fill();
  });
  context.globalAlpha = 1;
}

function drawSelection(context: Context, { boxes, selected, window, width, gutter, colours }: Scene): void {
  if (!selected) return;
  const top = rowTop(boxes.find(({ lane }) => lane === selected.lane), selected.depth);
  if (top === null) return;
  const plot = width - gutter;
  const from = Math.max(pixelOf(selected.start_ns, window, plot), -4);
  const to = Math.min(pixelOf(selected.start_ns + selected.duration_ns, window, plot), plot + 4);
  if (to < -2 || from > plot + 2) return;
  context.lineWidth = 2;
  context.strokeStyle = colours.background;
  context.strokeRect(from - 2, top - 2, Math.max(to - from, 1) + 4, ROW_PX + 3);
  context.strokeStyle = colours.text;
  context.strokeRect(from - 1, top - 1, Math.max(to - from, 1) + 2, ROW_PX + 1);
}

/** Names of lanes, as far as they fit; a line above each. */
function drawNames(context: Context, { boxes, width, gutter, scrolled, colours, top: from, bottom: to, pins }: Layer): void {
  const letters = Math.floor((gutter - 12 - (pins ? PIN_PX : 0)) / LETTER_PX);
  for (const { name, y, rows, isFolded, isPinned } of boxes) {
    const top = y - scrolled;
    const bottom = top + rows * ROW_PX;
    if (bottom < from || top > to) continue;
    context.fillStyle = colours.soft;
    context.fillRect(0, Math.round(bottom + 3), width, 1);
    context.fillStyle = colours.muted;
    const at = Math.min(Math.max(top, from), bottom - ROW_PX) + ROW_PX / 2;
    const sign = isFolded === undefined ? 0 : 2;
    if (sign > 0) context.fillText(isFolded ? '▸' : '▾', 6, at);
    linesOf(name, letters - sign, rows).forEach((line, row) => context.fillText(line, 6 + sign * LETTER_PX, at + row * 12));
    if (pins) drawPin(context, gutter - PIN_PX / 2, at, isPinned === true);
  }
}

/** A pin: its head, filled where the lane is pinned, and its needle. */
function drawPin(context: Context, x: number, y: number, isPinned: boolean): void {
  context.beginPath();
  context.arc(x, y - 2, 2.5, 0, 2 * Math.PI);
  context.moveTo(x, y + 0.5);
  context.lineTo(x, y + 5);
  context.lineWidth = 1;
  context.globalAlpha = isPinned ? 1 : 0.5;
  context.strokeStyle = context.fillStyle;
  context.stroke();
  if (isPinned) context.fill();
  context.globalAlpha = 1;
}

/** A name in two lines if it is too long for one and the lane has the rows: `Device 0,` `stream 7`. */
export function linesOf(name: string, letters: number, rows: number): string[] {
  const cut = (text: string): string => (text.length <= letters ? text : `${text.slice(0, Math.max(letters - 1, 1))}…`);
  const [, device, stream] = /^Device (.+), stream (.+)$/.exec(name) ?? [];
  if (device === undefined || name.length <= letters) return [cut(name)];
  return rows > 1 ? [cut(`Device ${device}`), cut(`stream ${stream}`)] : [cut(`${device} · ${stream}`)];
}

/** The range selected with Shift, or a gap, and its duration. */
function drawRange(context: Context, { window, width, height, gutter, colours }: Scene, range: Span): void {
  const plot = width - gutter;
  const [from, to] = [pixelOf(range.from, window, plot), pixelOf(range.to, window, plot)].map((x) => gutter + Math.min(Math.max(x, 0), plot));
  if (from === undefined || to === undefined) return;
  context.globalAlpha = 0.18;
  context.fillStyle = colours.focus;
  context.fillRect(from, AXIS_PX, to - from, height);
  context.globalAlpha = 1;
  context.fillRect(from, AXIS_PX, 1, height);
  context.fillRect(to, AXIS_PX, 1, height);
  const text = nanoseconds(lengthOf(range));
  const room = text.length * LETTER_PX + 8;
  const x = Math.min(Math.max((from + to - room) / 2, gutter), width - room);
  context.fillStyle = colours.text;
  context.fillRect(x, AXIS_PX + 2, room, 16);
  context.fillStyle = colours.background;
  context.font = FONT;
  context.textBaseline = 'middle';
  context.fillText(text, x + 4, AXIS_PX + 10);
}

/** Description of a bar, for a tooltip. */
export function barText(bar: Bar): { title: string; facts: string } {
  const length = nanoseconds(bar.duration_ns);
  if (bar.events > 1) return { title: plural(bar.events, 'event'), facts: `in ${length}, ${nanoseconds(bar.busy_ns)} of it taken: zoom in to see them` };
  return { title: bar.name, facts: length };
}

