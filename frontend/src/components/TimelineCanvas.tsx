/**
 * A timeline: bars on a canvas that zooms and pans with keys, mouse and touch. Its label and a table say the same in
 * words.
 */

import { effect, type ReadonlySignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { AXIS_PX, barUnder, gutterOf, heightOf, heldUntil, neighbourOf, ROW_PX, scrolledBy, timeOf, type Arrows, type Bar, type Box, type Piece } from '../base/timelineLayout';
import { lengthOf, panned, zoomed, type Span } from '../base/timelineWindow';
import { moment } from '../base/units';
import { readColours, watchColours } from './timelineColours';
import { barText, draw, PIN_PX, type Scene } from './timelineDraw';
import { gestures, type Point } from './timelineGestures';

export type Selected = Pick<Bar, 'lane' | 'depth' | 'start_ns' | 'duration_ns' | 'id'>;

interface Props {
  label: string;
  height: number;
  limits: Span;
  window: ReadonlySignal<Span>;
  onWindow: (window: Span) => void;
  boxes: readonly Box[];
  pieces: ReadonlySignal<readonly Piece[]>;
  arrows: readonly Arrows[];
  selected: Selected | null;
  onSelect: (bar: Bar | null) => void;
  /** `[` and `]`. */
  onOccurrence?: (by: 1 | -1) => void;
  onFit: () => void;
  onRange: (range: Span | null) => void;
  /** A click on a lane's name, and `f`: folds the marked event's lane, or all without a mark. */
  onFold?: (lane: number | null) => void;
  /** A click on a lane's pin, and `p`: pins the marked event's lane, or unpins all without a mark. */
  onPin?: (lane: number | null) => void;
  /** A click beside the bars of a stream, and `i`: before the marked event, else in the middle. */
  onGap?: (time: number) => void;
  /** The explained gap. */
  gap?: Span | null;
  marking: boolean;
  /** True if the wheel also zooms before the timeline has the focus: where nothing else scrolls. */
  wheels: boolean;
  hints?: (bar: Bar) => string;
  scrollTo?: number;
}

const ZOOM = 1.25;
const PAN = 0.2;
const LEAST_PX = 80;

export function TimelineCanvas(props: Props) {
  const { label, height, boxes } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [hover, setHover] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const painter = useMemo(() => paint(latest), []);
  useLayoutEffect(() => { // keys work as soon as it is drawn
    return box.current && canvas.current ? painter.attach(box.current, canvas.current, setHover) : undefined;
  }, [painter]);
  useEffect(() => painter.redraw());
  useEffect(() => painter.scrollTo(props.scrollTo ?? 0), [painter, props.scrollTo]);
  const total = heightOf(boxes);
  return (
    <div class="timeline-box" ref={box} tabIndex={0} role="application" aria-roledescription="timeline" aria-label={label}
      style={{ height: `${Math.min(height, Math.max(total, LEAST_PX))}px` }}>
      <canvas class="timeline-canvas" ref={canvas} aria-hidden="true" />
      {hover && <Tip hover={hover} {...(props.hints && { hints: props.hints })} width={canvas.current?.clientWidth ?? 0} />}
    </div>
  );
}

function Tip({ hover: { bar, x, y }, hints, width }: { hover: { bar: Bar; x: number; y: number }; hints?: (bar: Bar) => string; width: number }) {
  const { title, facts } = barText(bar);
  const more = hints?.(bar);
  const side = x > width / 2 ? { right: `${Math.max(width - x + 8, 0)}px` } : { left: `${x + 12}px` };
  return (
    <div class="timeline-tip" role="presentation" style={{ ...side, top: `${y + 14}px` }}>
      <b>{title}</b>
      <span>{facts} · starts at {moment(bar.start_ns)}</span>
      {more && <span>{more}</span>}
    </div>
  );
}

interface Painter {
  attach: (box: HTMLElement, canvas: HTMLCanvasElement, onHover: (hover: { bar: Bar; x: number; y: number } | null) => void) => () => void;
  redraw: () => void;
  scrollTo: (y: number) => void;
}

/** Draws at most once per frame; kept out of the component, which is not involved in moving. */
function paint(latest: { current: Props }): Painter {
  let canvas: HTMLCanvasElement | null = null;
  let frame = 0;
  let scrolled = 0;
  let range: Span | null = null;
  let colours = readColours();

  const gutter = (): number => gutterOf(canvas?.clientWidth ?? 0);
  const plot = (): number => Math.max((canvas?.clientWidth ?? 0) - gutter(), 1);
  const held = (): number => heldUntil(latest.current.boxes, canvas?.clientHeight ?? 0);
  const most = (): number => Math.max(heightOf(latest.current.boxes) - (canvas?.clientHeight ?? 0), 0);
  const timeAt = ({ x }: Point): number => timeOf(x - gutter(), latest.current.window.peek(), plot());

  function redraw(): void {
    if (!frame && canvas) frame = requestAnimationFrame(() => { frame = 0; drawNow(); });
  }
  function drawNow(): void {
    const context = canvas?.getContext('2d');
    if (!canvas || !context) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const { window: shown, boxes, pieces, arrows, selected, marking } = latest.current;
    scrolled = Math.min(Math.max(scrolled, 0), most());
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scene: Scene = { width, height, gutter: gutter(), scrolled, held: held(), window: shown.peek(), boxes, pieces: pieces.peek(), arrows, selected, marking, range, gap: latest.current.gap ?? null, pins: latest.current.onPin !== undefined, colours };
    draw(context, scene);
  }
  function move(to: Span): void { latest.current.onWindow(to); }
  function zoom(factor: number, at: number): void { move(zoomed(latest.current.window.peek(), factor, at, latest.current.limits)); }
  function scroll(by: number): void { scrolled = Math.min(Math.max(scrolled + by, 0), most()); redraw(); }
  function shift(pixels: number): void { move(panned(latest.current.window.peek(), -pixels / plot(), latest.current.limits)); }

  /** Distance of a point from the top of its box's rows, in pixels. */
  const within = (box: Box, y: number): number => y + scrolledBy(box, held(), scrolled) - box.y;
  const boxAt = ({ y }: Point): Box | undefined => {
    if (y < AXIS_PX) return undefined;
    const isHeld = y < held();
    return latest.current.boxes.find((each) => each.y < held() === isHeld && within(each, y) >= 0 && within(each, y) < each.rows * ROW_PX);
  };
  const isPin = (at: Point): boolean => latest.current.onPin !== undefined && at.x < gutter() && at.x >= gutter() - PIN_PX && boxAt(at) !== undefined;
  const isHead = (at: Point): boolean => at.x < gutter() && boxAt(at)?.isFolded !== undefined;

  function barAtPoint({ x, y }: Point): Bar | null {
    const box = x < gutter() ? undefined : boxAt({ x, y });
    if (!box) return null;
    const { pieces, window: shown } = latest.current;
    const depth = box.first + Math.floor(within(box, y) / ROW_PX);
    return barUnder(pieces.peek(), box.lane, depth, timeAt({ x, y }), (3 * lengthOf(shown.peek())) / plot());
  }

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { window: shown, limits, onOccurrence, onFit, onFold, onGap, onPin, onSelect, onRange, selected, pieces } = latest.current;
    const now = shown.peek();
    const middle = (now.from + now.to) / 2;
    const sideways = (by: 1 | -1): void => {
      const next = selected && neighbourOf(pieces.peek(), selected.lane, selected.depth, selected.start_ns, by);
      if (next) onSelect(next);
    };
    const keys: Record<string, () => void> = {
      w: () => zoom(1 / ZOOM, middle), '+': () => zoom(1 / ZOOM, middle), '=': () => zoom(1 / ZOOM, middle),
      s: () => zoom(ZOOM, middle), '-': () => zoom(ZOOM, middle),
      a: () => move(panned(now, -PAN, limits)), d: () => move(panned(now, PAN, limits)),
      ArrowLeft: () => (event.shiftKey ? sideways(-1) : move(panned(now, -PAN, limits))),
      ArrowRight: () => (event.shiftKey ? sideways(1) : move(panned(now, PAN, limits))),
      ArrowUp: () => scroll(-2 * ROW_PX), ArrowDown: () => scroll(2 * ROW_PX),
      Home: () => move({ from: limits.from, to: limits.from + lengthOf(now) }), End: () => move({ from: limits.to - lengthOf(now), to: limits.to }),
      f: () => onFold?.(selected?.lane ?? null), p: () => onPin?.(selected?.lane ?? null), i: () => onGap?.(selected ? selected.start_ns - 1 : middle),
      0: onFit, '[': () => onOccurrence?.(-1), ']': () => onOccurrence?.(1),
    };
    if (event.key === 'Escape' && (range || selected)) {
      range = null;
      onRange(null);
      if (!event.shiftKey) onSelect(null);
    } else if (keys[event.key]) keys[event.key]?.();
    else return;
    event.preventDefault();
    redraw();
  }

  return {
    redraw,
    scrollTo: (y) => { scrolled = y; redraw(); },
    attach(element, drawn, onHover) {
      canvas = drawn;
      const stopSignals = effect(() => {
        void latest.current.window.value;
        void latest.current.pieces.value;
        redraw();
      });
      const stopColours = watchColours(() => { colours = readColours(); redraw(); });
      const sizes = new ResizeObserver(redraw);
      sizes.observe(element);
      element.addEventListener('keydown', onKey);
      const stopGestures = gestures(element, {
        wheels: () => latest.current.wheels || document.activeElement === element,
        zoom: (factor, at) => zoom(factor, timeAt(at)),
        pan: (x, y) => { shift(x); scroll(-y); },
        fit: () => latest.current.onFit(),
        click: (at) => {
          const { onFold, onGap, onPin, onRange, onSelect } = latest.current;
          const [box, bar] = [boxAt(at), barAtPoint(at)];
          if (box && isPin(at)) return onPin?.(box.lane);
          if (box && isHead(at) && onFold) return onFold(box.lane);
          range = null;
          onRange(null);
          if (!bar && onGap && box?.kind === 'stream' && at.x >= gutter()) onGap(timeAt(at));
          else onSelect(bar);
          return redraw();
        },
        range: (one, other, done) => {
          const times = [timeAt(one), timeAt(other)];
          range = { from: Math.min(...times), to: Math.max(...times) };
          if (done) latest.current.onRange(range);
          redraw();
        },
        hover: (at) => {
          const bar = at && barAtPoint(at);
          if (canvas) canvas.style.cursor = at && ((latest.current.onFold && isHead(at)) || isPin(at)) ? 'pointer' : '';
          onHover(bar && at ? { bar, x: at.x, y: at.y } : null);
        },
      });
      return () => {
        canvas = null;
        cancelAnimationFrame(frame);
        frame = 0;
        stopSignals();
        stopColours();
        sizes.disconnect();
        element.removeEventListener('keydown', onKey);
        stopGestures();
      };
    },
  };
}
