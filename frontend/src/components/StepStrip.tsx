/** One column per step. A listbox with one tab stop: arrows move, the parts of the selected columns are shown. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Range } from '../base/stepRange';
import type { Column } from '../base/stepStrip';
import { ODDITIES } from '../base/stepStrip';
import { nanoseconds } from '../base/units';

interface Props {
  label?: string;
  columns: readonly Column[];
  marks: readonly { height: number; text: string }[];
  chosen: Range | null;
  /** True if several neighbours can be selected: by dragging, by Shift with a click or with an arrow. */
  several?: boolean;
  onChoose: (range: Range | null) => void;
}

/** Start and current end of a selection. */
interface Reach { from: number; to: number }

const MOVES: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

const rangeOf = ({ from, to }: Reach): Range => ({ first: Math.min(from, to), last: Math.max(from, to) });
const areEqual = (one: Range | null, other: Range | null): boolean => one?.first === other?.first && one?.last === other?.last;

export function StepStrip({ label = 'Steps', columns, marks, chosen, several = false, onChoose }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const reach = useRef<Reach | null>(null);
  const [dragged, setDragged] = useState<Reach | null>(null);
  const last = columns.length - 1;
  const shown = dragged ? rangeOf(dragged) : chosen;
  if (!areEqual(chosen, reach.current && rangeOf(reach.current))) reach.current = chosen && { from: chosen.first, to: chosen.last }; // selected elsewhere
  const stop = reach.current?.to ?? 0;

  const choose = (to: number, extends_: boolean): void => {
    reach.current = { from: several && extends_ ? reach.current?.from ?? to : to, to };
    onChoose(rangeOf(reach.current));
    list.current?.querySelector<HTMLElement>(`[data-step="${to}"]`)?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    const by = MOVES[event.key];
    const to = by !== undefined ? Math.min(last, Math.max(0, (reach.current?.to ?? (by > 0 ? -1 : 1)) + by))
      : event.key === 'Home' ? 0 : event.key === 'End' ? last : null;
    if (to === null && event.key !== 'Escape') return;
    event.preventDefault();
    if (to === null) onChoose(null);
    else choose(to, event.shiftKey);
  };
  const onClick = (index: number, event: MouseEvent): void => {
    if (!event.shiftKey && areEqual(chosen, { first: index, last: index })) onChoose(null);
    else choose(index, event.shiftKey);
  };
  const drag = (index: number): void => { if (dragged) setDragged({ ...dragged, to: index }); };
  useEffect(() => {
    if (!dragged) return undefined;
    const drop = (): void => {
      setDragged(null);
      if (dragged.from === dragged.to) return; // a click
      reach.current = dragged;
      onChoose(rangeOf(dragged));
    };
    const cancel = (): void => setDragged(null);
    window.addEventListener('pointerup', drop);
    window.addEventListener('pointercancel', cancel);
    return () => {
      window.removeEventListener('pointerup', drop);
      window.removeEventListener('pointercancel', cancel);
    };
  }, [dragged, onChoose]);
  useEffect(() => {
    if (chosen) list.current?.querySelector(`[data-step="${stop}"]`)?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  }, [chosen?.first, chosen?.last]);
  return (
    <div class="strip">
      <div class="strip-axis" aria-hidden="true">
        {marks.map(({ height, text }) => <span class="strip-mark" style={{ bottom: `${height * 100}%` }}>{text}</span>)}
      </div>
      <div class="strip-scroll">
        <div class="strip-columns" role="listbox" aria-orientation="horizontal" aria-label={label} aria-multiselectable={several} ref={list} onKeyDown={onKey}>
          {columns.map((column) => (
            <Step key={column.index} column={column} stop={stop === column.index}
              chosen={shown !== null && shown.first <= column.index && column.index <= shown.last}
              onClick={(event) => onClick(column.index, event)}
              onGrab={(event) => { if (several && !event.shiftKey && event.button === 0) setDragged({ from: column.index, to: column.index }); }}
              onReach={() => drag(column.index)} />
          ))}
        </div>
      </div>
    </div>
  );
}

interface StepProps {
  column: Column;
  chosen: boolean;
  stop: boolean;
  onClick: (event: MouseEvent) => void;
  onGrab: (event: PointerEvent) => void;
  onReach: () => void;
}

function Step({ column: { index, name, label, ns, height, oddity, pieces }, chosen, stop, onClick, onGrab, onReach }: StepProps) {
  const odd = oddity ? ODDITIES[oddity] : null;
  const text = `${name}: ${nanoseconds(ns)}${odd ? `, ${odd.word}` : ''}`;
  return (
    <div class={`strip-step${oddity ? ' odd' : ''}`} role="option" data-step={index} aria-selected={chosen} title={text}
      tabIndex={stop ? 0 : -1} onClick={onClick} onPointerDown={onGrab} onPointerEnter={onReach}>
      <span class="hidden">{text}</span>
      <span class="strip-room" aria-hidden="true">
        <span class="strip-column" style={{ height: `${Math.max(height * 100, 1)}%` }}>
          {pieces.length > 0 ? pieces.map(({ colour, share }) => <span class={`part-${colour}`} style={{ flexGrow: share }} />) : <span class="part-plain" style={{ flexGrow: 1 }} />}
        </span>
      </span>
      <span class="strip-label" aria-hidden="true">{label}</span>
      <span class="strip-odd" aria-hidden="true">{odd?.sign}{odd && <span class="strip-word"> {odd.word}</span>}</span>
    </div>
  );
}
