/** Stacked bars on a canvas: callees are below their callers. A table below it says the same in words. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Cell } from '../base/flame';
import { readColours, watchColours, type Colours } from './timelineColours';
import { FONT } from './timelineDraw';
import { gestures, type Point } from './timelineGestures';

export interface Paint { fill: string; letters: string }

interface Props {
  label: string;
  cells: readonly Cell[];
  nameOf: (node: number) => string;
  paintOf: (node: number, colours: Colours) => Paint;
  /** Nodes outside the set are pale; without a set, none is. */
  lit: ReadonlySet<number> | null;
  cursor: number | null;
  onCursor: (node: number | null) => void;
  /** Zooms to a node; the one at the top zooms out. */
  onOpen: (node: number) => void;
  /** One level out, and to the root. */
  onOut: (all: boolean) => void;
  factsOf: (node: number) => string;
}

const ROW_PX = 18;
const LEAST_PX = 90;
const LEAST_TEXT_PX = 28;
const LETTER_PX = 6.1; // of the font's 10 px

export function FlameCanvas(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [hover, setHover] = useState<{ node: number; at: Point } | null>(null);
  const painter = useMemo(() => paint(latest), []);
  useLayoutEffect(() => (box.current && canvas.current ? painter.attach(box.current, canvas.current, setHover) : undefined), [painter]);
  useEffect(() => painter.redraw());
  const rows = props.cells.reduce((most, { depth }) => Math.max(most, depth + 1), 1);
  const width = canvas.current?.clientWidth ?? 0;
  return (
    <div class="timeline-box flame-box" ref={box} tabIndex={0} role="application" aria-roledescription="flame graph" aria-label={props.label}
      style={{ height: `${Math.max(rows * ROW_PX, LEAST_PX)}px` }}>
      <canvas class="timeline-canvas flame-canvas" ref={canvas} aria-hidden="true" />
      {hover && (
        <div class="timeline-tip" role="presentation"
          style={{ ...(hover.at.x > width / 2 ? { right: `${Math.max(width - hover.at.x + 8, 0)}px` } : { left: `${hover.at.x + 12}px` }), top: `${hover.at.y + 14}px` }}>
          <b>{props.nameOf(hover.node)}</b>
          <span>{props.factsOf(hover.node)}</span>
        </div>
      )}
    </div>
  );
}

type Context = CanvasRenderingContext2D;

function paint(latest: { current: Props }) {
  let canvas: HTMLCanvasElement | null = null;
  let frame = 0;
  let colours = readColours();

  function redraw(): void {
    if (!frame && canvas) frame = requestAnimationFrame(() => { frame = 0; drawNow(); });
  }

  function drawNow(): void {
    const context = canvas?.getContext('2d');
    if (!canvas || !context) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.background;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textBaseline = 'middle';
    for (const cell of latest.current.cells) drawCell(context, cell, width);
  }

  function drawCell(context: Context, { node, depth, from, to }: Cell, whole: number): void {
    const { lit, cursor, nameOf, paintOf } = latest.current;
    const [x, y, width] = [from * whole, depth * ROW_PX, (to - from) * whole];
    const pale = lit !== null && !lit.has(node);
    const { fill, letters } = pale ? { fill: colours.soft, letters: colours.text } : paintOf(node, colours);
    context.fillStyle = fill;
    context.fillRect(x, y, Math.max(width > 3 ? width - 0.8 : width, 0.5), ROW_PX - 1);
    if (node === cursor) {
      context.lineWidth = 2;
      context.strokeStyle = colours.text;
      context.strokeRect(x + 1, y + 1, Math.max(width - 2.8, 1), ROW_PX - 3);
    }
    if (width < LEAST_TEXT_PX) return;
    const room = Math.floor((width - 8) / LETTER_PX);
    const text = nameOf(node);
    context.fillStyle = letters;
    context.fillText(text.length <= room ? text : `${text.slice(0, Math.max(room - 1, 0))}…`, x + 4, y + ROW_PX / 2);
  }

  function nodeAt({ x, y }: Point): number | null {
    const part = x / Math.max(canvas?.clientWidth ?? 1, 1);
    const depth = Math.floor(y / ROW_PX);
    return latest.current.cells.find((cell) => cell.depth === depth && part >= cell.from && part < cell.to)?.node ?? null;
  }

  /** To the neighbour beside, below or above the marked bar; to the top one without a mark. */
  function step(key: string): void {
    const { cells, cursor, onCursor } = latest.current;
    const here = cells.find(({ node }) => node === cursor);
    if (!here) return onCursor(cells[0]?.node ?? null);
    const row = (depth: number): Cell[] => cells.filter((cell) => cell.depth === depth).toSorted((one, other) => one.from - other.from);
    const beside = row(here.depth);
    const at = beside.indexOf(here);
    const next = {
      ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1],
      ArrowDown: row(here.depth + 1).find(({ from, to }) => from >= here.from - 1e-12 && to <= here.to + 1e-12),
      ArrowUp: row(here.depth - 1).find(({ from, to }) => here.from >= from - 1e-12 && here.to <= to + 1e-12),
    }[key];
    if (next) onCursor(next.node);
  }

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { cursor, onCursor, onOpen, onOut } = latest.current;
    if (event.key.startsWith('Arrow')) step(event.key);
    else if (event.key === 'Enter' && cursor !== null) onOpen(cursor);
    else if (event.key === 'Backspace') onOut(false);
    else if (event.key === 'Home' || event.key === '0') onOut(true);
    else if (event.key === 'Escape' && cursor !== null) onCursor(null);
    else return;
    event.preventDefault();
  }

  return {
    redraw,
    attach(element: HTMLElement, drawn: HTMLCanvasElement, onHover: (hover: { node: number; at: Point } | null) => void): () => void {
      canvas = drawn;
      redraw();
      const stopColours = watchColours(() => { colours = readColours(); redraw(); });
      const sizes = new ResizeObserver(redraw);
      sizes.observe(element);
      element.addEventListener('keydown', onKey);
      const nothing = (): void => {};
      const stopGestures = gestures(element, {
        wheels: () => false, zoom: nothing, pan: nothing, fit: nothing, range: nothing,
        click: (at) => {
          const node = nodeAt(at);
          if (node !== null) latest.current.onOpen(node);
        },
        hover: (at) => {
          const node = at && nodeAt(at);
          onHover(node !== null && at ? { node, at } : null);
        },
      });
      return () => {
        canvas = null;
        cancelAnimationFrame(frame);
        frame = 0;
        stopColours();
        sizes.disconnect();
        element.removeEventListener('keydown', onKey);
        stopGestures();
      };
    },
  };
}
