/** The timeline of the selected profile: its slices, the marked event, the places of a finding's events. */

import { effect, signal, useSignalEffect, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { getIdle, getTimelineEvent, getTimelineMarks, getTimelineSlice } from '../api/client';
import type { IdleAnswer, Piece, TimelineEvent, TimelineLanes, TimelineMarks, TimelineSlice } from '../api/types.gen';
import { NO_KEY } from '../base/selection';
import { around, spanFrom, spanText, within, type Span } from '../base/timelineWindow';
import { shownVersion } from './answers';
import { toast } from './notices';
import { readyOr, resource, useResource } from './resource';
import { go, route } from './route';
import { selectedKey } from './runs';
import { slices, type Slices } from './slices';

/** Width in pixels that a tile is requested for: a view shows between half and all of one. */
const TILE_PX = 2048;
const SETTLED_MS = 400;
const EVENT_ID = /^\d{1,15}$/;

export const limitsOf = (lanes: TimelineLanes): Span => ({ from: 0, to: lanes.until_ns });

/** Bars, and arrows from launches to what they launched. */
export type TimelineSlices = Slices<Pick<TimelineSlice, 'bars' | 'names' | 'arrows'>>;

/** Slices of some lanes, all if none are named, with a finding's events marked. New ones when any of that changes. */
export function useSlices(limits: Span, lanes: readonly number[], finding: string): TimelineSlices {
  const of = shownVersion();
  const named = lanes.join(',');
  return useMemo(() => {
    const key = selectedKey.peek() ?? NO_KEY;
    return slices(({ from, to }, given) => getTimelineSlice({
      ...key, from_ns: from, to_ns: to, width: TILE_PX, ...(named && { lanes: named }), ...(finding && { finding }),
    }, given), limits);
  }, [of, named, finding, limits.to]);
}

const events = resource<TimelineEvent>({ keep: 24, once: true });

/** Details of the event with this id; those of the previous one until they are loaded, null without any. */
export function useTimelineEvent(id: string): TimelineEvent | null {
  const [of, key] = [shownVersion(), selectedKey.value ?? NO_KEY];
  const isNamed = key !== NO_KEY && EVENT_ID.test(id);
  const found = useResource(events, isNamed ? `${of} ${id}` : '', (given) => getTimelineEvent({ ...key, event: Number(id) }, given));
  const error = found.kind === 'failed' ? found.error : null;
  useEffect(() => { if (error) toast(error.message); }, [error]);
  const before = useMemo((): { event: TimelineEvent | null } => ({ event: null }), [of]);
  if (found.kind !== 'loading' || !isNamed) before.event = readyOr(found, null);
  return before.event;
}

/** Marks an event, or none; the address follows without an entry in the history. */
export const markEvent = (id: number | null): void => go({ event: id === null || id < 0 ? '' : String(id), at: '' }, 'replace');

const idle = resource<IdleAnswer>({ keep: 24, once: true });

/** Why nothing runs at the time in the address; null until that is known, and without a time. */
export function useIdle(): IdleAnswer | null {
  const [of, key, { at }] = [shownVersion(), selectedKey.value ?? NO_KEY, route.value];
  const isNamed = key !== NO_KEY && EVENT_ID.test(at);
  return readyOr(useResource(idle, isNamed ? `${of} ${at}` : '', (given) => getIdle({ ...key, at_ns: Number(at) }, given)), null);
}

/** Requests why nothing runs at a time; then no event is marked. */
export const askIdle = (time: number): void => go({ at: String(Math.max(0, Math.round(time))), event: '' }, 'replace');

const lanesOf = (text: string): ReadonlySet<number> => new Set(text.split(',').filter((each) => EVENT_ID.test(each)).map(Number));
const laneText = (lanes: readonly number[]): string => lanes.toSorted((one, other) => one - other).join(',');

/** The numbers of the folded lanes, and of the pinned ones. */
export const foldedLanes = (): ReadonlySet<number> => lanesOf(route.value.folded);
export const pinnedLanes = (): ReadonlySet<number> => lanesOf(route.value.pinned);

/** Folds lanes, or unfolds them if all of them are folded. */
export function foldLanes(lanes: readonly number[]): void {
  const folded = foldedLanes();
  const isUnfolding = lanes.every((lane) => folded.has(lane));
  const rest = [...folded].filter((lane) => !lanes.includes(lane));
  go({ folded: laneText([...rest, ...(isUnfolding ? [] : lanes)]) }, 'replace');
}

/** Pins a lane, or unpins it; without a lane, unpins all. */
export function pinLane(lane: number | null): void {
  const rest = lane === null ? [] : [...pinnedLanes()].filter((each) => each !== lane);
  go({ pinned: laneText(lane === null || pinnedLanes().has(lane) ? rest : [...rest, lane]) }, 'replace');
}

/** The timeline of the whole profile, around an event of a finding. */
export const openTimeline = (window: Span, finding: string, event: number): void =>
  go({ view: 'timeline', win: spanText(window), finding, event: String(event) }, 'push');

/**
 * The timeline of the whole profile at a piece of an entry, with room on both sides; marks its event if it is known.
 */
export function showPiece({ start_ns: start, end_ns: end, event_id: event = null }: Piece): void {
  const { from, to } = around({ start_ns: start, duration_ns: end - start }, { from: 0, to: Number.MAX_SAFE_INTEGER });
  go({ view: 'timeline', win: spanText({ from, to }), finding: '', event: event === null ? '' : String(event) }, 'push');
}

/** The window of the view: from the address, stored in it a moment after it has come to rest. */
export function useRoutedWindow(limits: Span): { window: ReadonlySignal<Span>; setWindow: (to: Span) => void } {
  const of = shownVersion();
  const camera = useMemo(() => {
    const shown = signal(within(spanFrom(route.peek().win) ?? limits, limits));
    let settling: ReturnType<typeof setTimeout> | undefined;
    const setWindow = (to: Span): void => {
      shown.value = to;
      clearTimeout(settling);
      settling = setTimeout(() => {
        if (route.peek().view === 'timeline') go({ win: spanText(to) }, 'replace');
      }, SETTLED_MS);
    };
    return { window: shown, setWindow, stop: () => clearTimeout(settling), seen: route.peek().win };
  }, [of, limits.to]);
  useEffect(() => camera.stop, [camera]); // a window that has not come to rest is not of the next view or profile
  useEffect(() => effect(() => { // Back, or a link
    const { win } = route.value;
    if (win === camera.seen) return; // something else has changed
    camera.seen = win;
    const asked = spanFrom(win);
    if (asked && win !== spanText(camera.window.peek())) camera.setWindow(within(asked, limits));
  }), [camera]);
  return camera;
}

/** The window of a strip: around its event, and free to move until there is another event. */
export function useStripWindow(event: TimelineEvent | null, limits: Span): { window: ReadonlySignal<Span>; setWindow: (to: Span) => void; fit: () => void } {
  const camera = useMemo(() => signal<Span>(event ? around(event, limits) : limits), []);
  const fit = (): void => { camera.value = event ? around(event, limits) : limits; };
  useEffect(fit, [event?.id, limits.to]);
  return { window: camera, setWindow: (to) => { camera.value = to; }, fit };
}

/** Slices for a window, whenever it moves. */
export function useNeeded(of: Slices, window: ReadonlySignal<Span>): void {
  useEffect(() => {
    of.need(window.peek());
    return of.stop;
  }, [of]);
  useSignalEffect(() => of.need(window.value));
}

const marks = resource<TimelineMarks>({ keep: 8, once: true });

/** Positions of a finding's events in a span of time; null until known. */
export function useMarks(finding: string, { from, to }: Span, width: number): TimelineMarks | null {
  const [of, key] = [shownVersion(), selectedKey.value ?? NO_KEY];
  const query = { ...key, finding, from_ns: Math.floor(from), to_ns: Math.ceil(to), width };
  const isAsked = key !== NO_KEY && finding !== '' && to > from;
  return readyOr(useResource(marks, isAsked ? JSON.stringify([of, query]) : '', (given) => getTimelineMarks(query, given)), null);
}

/** The step that contains a time, with `beside` steps on each side; `otherwise` without steps. */
export function stepsAround({ steps }: TimelineLanes, time: number, beside: number, otherwise: Span): { from: number; to: number; count: number } {
  const at = steps.start_ns.findLastIndex((start) => start <= time);
  const [first, last] = [Math.max(at - beside, 0), Math.min(Math.max(at, 0) + beside, steps.start_ns.length - 1)];
  const from = steps.start_ns[first];
  const end = steps.start_ns[last];
  if (from === undefined || end === undefined) return { ...otherwise, count: 0 };
  return { from: Math.min(from, time), to: Math.max(end + (steps.duration_ns[last] ?? 0), time + 1), count: last - first + 1 };
}
