/** One column per step. A listbox with one tab stop: arrows move, the chosen column is the one whose parts are shown. */

import { useEffect, useRef } from 'preact/hooks';
import type { Column } from '../base/stepStrip';
import { ODDITIES } from '../base/stepStrip';
import { nanoseconds } from '../base/units';

interface Props {
  columns: readonly Column[];
  marks: readonly { height: number; text: string }[];
  chosen: number | null;
  onChoose: (index: number | null) => void;
}

const MOVES: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };

export function StepStrip({ columns, marks, chosen, onChoose }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const last = columns.length - 1;
  const select = (index: number): void => {
    onChoose(index);
    list.current?.querySelector<HTMLElement>(`[data-step="${index}"]`)?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    const by = MOVES[event.key];
    const to = by !== undefined ? Math.min(last, Math.max(0, (chosen ?? (by > 0 ? -1 : 1)) + by))
      : event.key === 'Home' ? 0 : event.key === 'End' ? last : null;
    if (to === null && event.key !== 'Escape') return;
    event.preventDefault();
    if (to === null) onChoose(null);
    else select(to);
  };
  useEffect(() => {
    if (chosen !== null) list.current?.querySelector(`[data-step="${chosen}"]`)?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  }, [chosen]);
  return (
    <div class="strip">
      <div class="strip-axis" aria-hidden="true">
        {marks.map(({ height, text }) => <span class="strip-mark" style={{ bottom: `${height * 100}%` }}>{text}</span>)}
      </div>
      <div class="strip-scroll">
        <div class="strip-columns" role="listbox" aria-orientation="horizontal" aria-label="Steps" ref={list} onKeyDown={onKey}>
          {columns.map((column) => (
            <Step key={column.index} column={column} chosen={chosen === column.index} stop={(chosen ?? 0) === column.index}
              onChoose={() => (chosen === column.index ? onChoose(null) : select(column.index))} />
          ))}
        </div>
      </div>
    </div>
  );
}

interface StepProps { column: Column; chosen: boolean; stop: boolean; onChoose: () => void }

function Step({ column: { index, name, label, ns, height, oddity, pieces }, chosen, stop, onChoose }: StepProps) {
  const odd = oddity ? ODDITIES[oddity] : null;
  const text = `${name}: ${nanoseconds(ns)}${odd ? `, ${odd.word}` : ''}`;
  return (
    <div class={`strip-step${oddity ? ' odd' : ''}`} role="option" data-step={index} aria-selected={chosen} title={text}
      tabIndex={stop ? 0 : -1} onClick={onChoose}>
      <span class="hidden">{text}</span>
      <span class="strip-room" aria-hidden="true">
        <span class="strip-column" style={{ height: `${Math.max(height * 100, 1)}%` }}>
          {pieces.length > 0 ? pieces.map(({ part, share }) => <span class={`part-${part}`} style={{ flexGrow: share }} />) : <span class="part-plain" style={{ flexGrow: 1 }} />}
        </span>
      </span>
      <span class="strip-label" aria-hidden="true">{label}</span>
      <span class="strip-odd" aria-hidden="true">{odd?.sign}{odd && <span class="strip-word"> {odd.word}</span>}</span>
    </div>
  );
}
