/** A stretch of time with its steps and marks, and the part of it that a timeline shows. Decoration: the timeline's keys do the same. */

import { effect, type ReadonlySignal } from '@preact/signals';
import type { TargetedPointerEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { pixelOf, timeOf } from '../base/timelineLayout';
import { lengthOf, within, type Span } from '../base/timelineWindow';
import { readColours, watchColours } from './timelineColours';

interface Props {
  stretch: Span;
  limits: Span;
  window: ReadonlySignal<Span>;
  onWindow: (window: Span) => void;
  /** Where steps begin. */
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
    const at = timeOf(event.clientX - box.left, stretch, box.width);
    onWindow(within({ from: at - half, to: at + half }, limits));
  };
  const start = (event: TargetedPointerEvent<HTMLCanvasElement>): void => {
    event.currentTarget.setPointerCapture?.(event.pointerId);
    go(event);
  };
  return <canvas class="minimap" ref={canvas} aria-hidden="true" onPointerDown={start} onPointerMove={go} />;
}

function paint(canvas: HTMLCanvasElement, { stretch, window: shown, steps, marks, current }: Props): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  const colours = readColours();
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const at = (time: number): number => pixelOf(time, stretch, width);
  context.fillStyle = colours.soft;
  context.fillRect(0, 0, width, height);
  context.fillStyle = colours.muted;
  for (const step of steps.length < width / 3 ? steps : []) context.fillRect(Math.round(at(step)), 0, 1, height);
  context.fillStyle = colours.accent;
  for (const mark of marks) context.fillRect(Math.floor(at(mark)), 5, TICK_PX, height - 10);
  const { from, to } = shown.peek();
  const [left, right] = [Math.max(at(from), 0), Math.min(at(to), width)];
  context.globalAlpha = 0.16;
  context.fillStyle = colours.text;
  if (right > left) context.fillRect(left, 0, Math.max(right - left, 2), height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.text;
  context.lineWidth = 1;
  if (right > left) context.strokeRect(left + 0.5, 0.5, Math.max(right - left - 1, 2), height - 1);
  if (current === null) return;
  const x = Math.round(at(current));
  context.fillStyle = colours.text;
  context.beginPath();
  context.moveTo(x - 4, 0);
  context.lineTo(x + 5, 0);
  context.lineTo(x + 0.5, 6);
  context.fill();
}
