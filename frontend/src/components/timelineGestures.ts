/**
 * Mouse, pen and fingers over a timeline, translated to commands. Points are in CSS pixels from the element's corner.
 */

export interface Point { x: number; y: number }

interface Meaning {
  /** True if the wheel is for the timeline; with Ctrl, which a trackpad sends for a pinch, it always is. */
  wheels: () => boolean;
  zoom: (factor: number, at: Point) => void;
  /** In pixels since the last call. */
  pan: (x: number, y: number) => void;
  fit: () => void;
  click: (at: Point) => void;
  range: (from: Point, to: Point, done: boolean) => void;
  hover: (at: Point | null) => void;
}

const STILL_PX = 4; // most movement of a hand that clicks
const WHEEL_ZOOM = 0.0018; // per pixel of a wheel's delta
const LINE_PX = 16; // for wheels that count lines

export function gestures(element: HTMLElement, meaning: Meaning): () => void {
  const down = new Map<number, Point>();
  let began: { at: Point; shift: boolean; moved: boolean } | null = null;

  const pointOf = (event: MouseEvent): Point => {
    const box = element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const apart = (): number => {
    const [one, other] = [...down.values()];
    return one && other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
  };

  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const at = pointOf(event);
    down.set(event.pointerId, at);
    element.setPointerCapture?.(event.pointerId);
    began = { at, shift: event.shiftKey, moved: down.size > 1 };
    meaning.hover(null);
  };
  const onMove = (event: PointerEvent): void => {
    const at = pointOf(event);
    const before = down.get(event.pointerId);
    if (!before || !began) {
      meaning.hover(at);
      return;
    }
    const distance = apart();
    down.set(event.pointerId, at);
    if (down.size === 2) {
      const [one, other] = [...down.values()];
      if (one && other && distance > 0) meaning.zoom(distance / Math.max(apart(), 1), { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 });
      return;
    }
    if (!began.moved && Math.hypot(at.x - began.at.x, at.y - began.at.y) < STILL_PX) return;
    if (began.shift) meaning.range(began.at, at, false);
    else meaning.pan(at.x - (began.moved ? before.x : began.at.x), at.y - (began.moved ? before.y : began.at.y));
    began.moved = true;
  };
  const onUp = (event: PointerEvent): void => {
    const at = pointOf(event);
    if (!down.delete(event.pointerId) || !began) return;
    if (!began.moved) meaning.click(at);
    else if (began.shift) meaning.range(began.at, at, true);
    if (down.size === 0) began = null;
    else began.moved = true;
  };
  const onCancel = (event: PointerEvent): void => {
    down.delete(event.pointerId);
    if (down.size === 0) began = null;
  };
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !meaning.wheels()) return;
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
    const [x, y] = [event.deltaX * unit, event.deltaY * unit];
    if (Math.abs(x) > Math.abs(y)) meaning.pan(-x, 0);
    else if (event.shiftKey) meaning.pan(0, -y);
    else meaning.zoom(Math.exp(y * WHEEL_ZOOM * (event.ctrlKey ? 4 : 1)), pointOf(event));
  };
  const onLeave = (): void => meaning.hover(null);
  const onDouble = (): void => meaning.fit();

  const listening = new AbortController();
  const { signal } = listening;
  element.addEventListener('pointerdown', onDown, { signal });
  element.addEventListener('pointermove', onMove, { signal });
  element.addEventListener('pointerup', onUp, { signal });
  element.addEventListener('pointercancel', onCancel, { signal });
  element.addEventListener('pointerleave', onLeave, { signal });
  element.addEventListener('dblclick', onDouble, { signal });
  element.addEventListener('wheel', onWheel, { signal, passive: false });
  return () => listening.abort();
}
