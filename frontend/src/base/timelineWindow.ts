/** Windows of time: zoomed, moved, kept inside the recording, cut into tiles for requests. Times are in ns. */

export interface Span { from: number; to: number }

const LEAST_NS = 20; // a recording is not finer

export const lengthOf = ({ from, to }: Span): number => to - from;
export const areSame = (one: Span, other: Span): boolean => one.from === other.from && one.to === other.to;

/** The same length inside `limits`, or all of them. */
export function within(window: Span, limits: Span): Span {
  const length = Math.min(Math.max(lengthOf(window), LEAST_NS), lengthOf(limits));
  const from = Math.min(Math.max(window.from, limits.from), limits.to - length);
  return { from, to: from + length };
}

/** Longer by `factor` (shorter below 1); `at` stays in place. */
export function zoomed(window: Span, factor: number, at: number, limits: Span): Span {
  const length = Math.min(Math.max(lengthOf(window) * factor, LEAST_NS), lengthOf(limits));
  const share = (at - window.from) / lengthOf(window);
  const from = at - share * length;
  return within({ from, to: from + length }, limits);
}

/** Moved by a part of its own length. */
export function panned(window: Span, part: number, limits: Span): Span {
  const by = part * lengthOf(window);
  return within({ from: window.from + by, to: window.to + by }, limits);
}

/** An event with twice its length on each side; an instant also gets some room. */
export function around(event: { start_ns: number; duration_ns: number }, limits: Span): Span {
  const room = 2 * Math.max(event.duration_ns, 1000);
  return within({ from: event.start_ns - room, to: event.start_ns + event.duration_ns + room }, limits);
}

/** Moved only as far as needed to show the event; zoomed if it would be a dot or would not fit. */
export function showing(window: Span, event: { start_ns: number; duration_ns: number }, limits: Span): Span {
  const end = event.start_ns + event.duration_ns;
  const part = event.duration_ns / lengthOf(window);
  if (part > 0.9 || part < 0.002) return around(event, limits);
  if (event.start_ns >= window.from && end <= window.to) return window;
  const half = lengthOf(window) / 2;
  const middle = (event.start_ns + end) / 2;
  return within({ from: middle - half, to: middle + half }, limits);
}

/** `from-to` in whole ns, for an address; null for another form. */
export const spanText = ({ from, to }: Span): string => `${Math.floor(from)}-${Math.ceil(to)}`;

export function spanFrom(text: string): Span | null {
  const found = /^(\d{1,16})-(\d{1,16})$/.exec(text);
  const [from, to] = [Number(found?.[1]), Number(found?.[2])];
  return found && to > from ? { from, to } : null;
}

/** One tile: all tiles of a level together cover time without a gap, and each is half of one of the next level. */
export interface Tile { level: number; index: number }

const LEAST_LEVEL = 6;

/** The level whose tiles are at least as long as the window: two of them always cover it. */
export const levelOf = (window: Span): number => Math.max(LEAST_LEVEL, Math.ceil(Math.log2(lengthOf(window))));

export function tileSpan({ level, index }: Tile): Span {
  const length = 2 ** level;
  return { from: index * length, to: (index + 1) * length };
}

export const tileName = ({ level, index }: Tile): string => `${level}/${index}`;

/** The tiles of a window that lie in the recording, first to last. */
export function tilesOf(window: Span, limits: Span, level = levelOf(window)): Tile[] {
  const length = 2 ** level;
  const first = Math.floor(Math.max(window.from, limits.from) / length);
  const last = Math.ceil(Math.min(window.to, limits.to) / length);
  return Array.from({ length: Math.max(last - first, 0) }, (_, at) => ({ level, index: first + at }));
}

/** Windows that are likely to be viewed next: the neighbours, and the view from twice as far. */
export function nextTiles(window: Span, limits: Span): Tile[] {
  const level = levelOf(window);
  const shown = new Set(tilesOf(window, limits).map(tileName));
  const length = 2 ** level;
  const beside = tilesOf({ from: window.from - length, to: window.to + length }, limits, level).filter((tile) => !shown.has(tileName(tile)));
  const above = lengthOf(limits) > length ? tilesOf(window, limits, level + 1) : [];
  return [...beside, ...above];
}

/** The next larger tile around this one. */
export const parentOf = ({ level, index }: Tile): Tile => ({ level: level + 1, index: Math.floor(index / 2) });

/** Marks of a time axis: at 1, 2 or 5 times a power of ten, at least `px` apart. */
export function timeMarks(window: Span, width: number, px = 90): { at: number[]; step: number } {
  const least = (lengthOf(window) * px) / Math.max(width, px);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power;
  const first = Math.ceil(window.from / step);
  const last = Math.floor(window.to / step);
  return { step, at: Array.from({ length: Math.max(last - first + 1, 0) }, (_, index) => (first + index) * step) };
}
