/** The line between two panes, moved by dragging or with the arrow keys. */

interface Props { label: string; width: number; least: number; most: number; onWidth: (width: number) => void }

const STEP_PX = 16;

export function Splitter({ label, width, least, most, onWidth }: Props) {
  const drag = (event: PointerEvent): void => {
    const { currentTarget: line, clientX: from } = event;
    if (!(line instanceof HTMLElement)) return;
    line.setPointerCapture(event.pointerId);
    const move = (moved: PointerEvent): void => onWidth(width + moved.clientX - from);
    line.addEventListener('pointermove', move);
    line.addEventListener('lostpointercapture', () => line.removeEventListener('pointermove', move), { once: true });
  };
  const step = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowLeft' ? -STEP_PX : event.key === 'ArrowRight' ? STEP_PX : 0;
    if (by !== 0) onWidth(width + by);
  };
  return (
    <div class="splitter" role="separator" aria-orientation="vertical" aria-label={label} tabIndex={0}
      aria-valuenow={width} aria-valuemin={least} aria-valuemax={most} onPointerDown={drag} onKeyDown={step} />
  );
}
