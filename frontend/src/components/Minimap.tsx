/**
 * A stretch of time: how busy host and device are, steps and marks, and the part shown by a timeline. Decoration: the
 * timeline's keys do the same.
 */

import { effect, type ReadonlySignal } from '@preact/signals';
import type { TargetedPointerEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { gutterOf, pixelOf, timeOf } from '../base/timelineLayout';
import { lengthOf, within, type Span } from '../base/timelineWindow';
import { readColours, watchColours, type Colours } from './timelineColours';
import { FONT } from './timelineDraw';

interface Props {
  stretch: Span;
  limits: Span;
  window: ReadonlySignal<Span>;
  onWindow: (window: Span) => void;
  /** In percent of equally long parts of `limits`. */
  busy: { host: readonly number[]; device: readonly number[] };
  /** Starts of the steps. */
  steps: readonly number[];
  marks: readonly number[];
  /** The time of the marked event. */
  current: number | null;
}

const TICK_PX = 2;

export function Minimap(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const redraw = useRef(() => {});
  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    let frame = 0;
    redraw.current = () => { frame ||= requestAnimationFrame(() => { frame = 0; paint(element, latest.current); }); };
    const stopSignals = effect(() => { void latest.current.window.value; redraw.current(); });
    const stopColours = watchColours(redraw.current);
    const sizes = new ResizeObserver(redraw.current);
    sizes.observe(element);
    return () => {
      cancelAnimationFrame(frame);
      stopSignals();
      stopColours();
      sizes.disconnect();
    };
  }, []);
  useEffect(() => redraw.current());
  const go = (event: TargetedPointerEvent<HTMLCanvasElement>): void => {
    if (event.buttons !== 1) return;
    const { stretch, limits, window, onWindow } = latest.current;
    const box = event.currentTarget.getBoundingClientRect();
    const half = lengthOf(window.peek()) / 2;
    const gutter = gutterOf(box.width);
    const at = timeOf(event.clientX - box.left - gutter, stretch, box.width - gutter);
    onWindow(within({ from: at - half, to: at + half }, limits));
  };
  const start = (event: TargetedPointerEvent<HTMLCanvasElement>): void => {
    event.currentTarget.setPointerCapture?.(event.pointerId);
    go(event);
  };
  return <canvas class="minimap" ref={canvas} aria-hidden="true" onPointerDown={start} onPointerMove={go} />;
}

const BANDS = [['device', 'Device'], ['host', 'Host']] as const; // in the same order as the lanes below

function paint(canvas: HTMLCanvasElement, { stretch, limits, window: shown, busy, steps, marks, current }: Props): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  const colours = readColours();
  const { clientWidth, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  const gutter = gutterOf(clientWidth);
  const width = clientWidth - gutter;
  context.setTransform(ratio, 0, 0, ratio, gutter * ratio, 0);
  const at = (time: number): number => Math.min(Math.max(pixelOf(time, stretch, width), 0), width);
  const bands = BANDS.filter(([of]) => busy[of].length > 0);
  bands.forEach(([of, name], index) => {
    const [top, room] = [(index * height) / bands.length, height / bands.length];
    context.fillStyle = colours.muted;
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillText(name, 6 - gutter, top + room / 2);
    context.fillStyle = colours[of];
    context.fill(areaOf(busy[of], limits, at, top + room, room - 2));
  });
  context.fillStyle = colours.line;
  for (const step of steps.length < width / 3 ? steps : []) context.fillRect(Math.round(at(step)), 0, 1, height);
  context.fillStyle = colours.accent;
  for (const mark of marks) context.fillRect(Math.floor(at(mark)), 5, TICK_PX, height - 10);
  drawWindow(context, colours, at(shown.peek().from), at(shown.peek().to), width, height);
  if (current === null) return;
  const x = Math.round(at(current));
  context.fillStyle = colours.text;
  context.beginPath();
  context.moveTo(x - 4, 0);
  context.lineTo(x + 5, 0);
  context.lineTo(x + 0.5, 6);
  context.fill();
}

/** One column for each part of the time, as high as its busy share. */
function areaOf(percent: readonly number[], limits: Span, at: (time: number) => number, bottom: number, room: number): Path2D {
  const area = new Path2D();
  const edge = (part: number): number => Math.round(at(limits.from + (lengthOf(limits) * part) / percent.length));
  percent.forEach((share, part) => {
    const [left, right] = [edge(part), edge(part + 1)];
    const height = (room * share) / 100;
    if (right > left && height > 0) area.rect(left, bottom - height, right - left, height);
  });
  return area;
}

/** Time outside the timeline's window is pale. */
function drawWindow(context: CanvasRenderingContext2D, colours: Colours, left: number, right: number, width: number, height: number): void {
  context.globalAlpha = 0.6;
  context.fillStyle = colours.background;
  context.fillRect(0, 0, left, height);
  context.fillRect(right, 0, width - right, height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.text;
  context.lineWidth = 1;
  if (right > left) context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), height - 1);
}
