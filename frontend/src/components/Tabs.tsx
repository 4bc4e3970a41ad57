/** The switch between views: one tab stop, arrows move. */

import { useEffect, useRef } from 'preact/hooks';

/** `empty` says why a view shows nothing; empty if it shows something. */
interface Tab<T extends string> { id: T; label: string; empty?: string }

interface Props<T extends string> {
  label: string;
  tabs: readonly Tab<T>[];
  chosen: T;
  panel: string;
  onChoose: (id: T) => void;
  /** The mouse rests on a tab, or presses it. */
  onNear: (id: T) => void;
}

const REST_MS = 40; // a mouse on its way elsewhere is gone by then
const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Tabs<T extends string>({ label, tabs, chosen, panel, onChoose, onNear }: Props<T>) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => { // if not all tabs fit
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [chosen, tabs.length]);
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const rest = (id: T | null): void => {
    clearTimeout(resting.current);
    if (id !== null && id !== chosen) resting.current = setTimeout(() => onNear(id), REST_MS);
  };
  const step = (event: KeyboardEvent): void => {
    const by = STEPS[event.key];
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const next = by === undefined ? undefined : tabs.at((at + by) % tabs.length);
    if (!next) return;
    event.preventDefault();
    onChoose(next.id);
    const { currentTarget } = event;
    if (currentTarget instanceof HTMLElement) currentTarget.querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <div ref={list} class="tabs" role="tablist" aria-label={label} onKeyDown={step}>
      {tabs.map((tab) => (
        <button type="button" role="tab" class={tab.empty ? 'tab empty' : 'tab'} title={tab.empty || undefined} data-tab={tab.id} data-label={tab.label} aria-selected={tab.id === chosen} aria-controls={panel}
          tabIndex={tab.id === chosen ? 0 : -1} onClick={() => onChoose(tab.id)}
          onPointerEnter={() => rest(tab.id)} onPointerLeave={() => rest(null)} onPointerDown={() => onNear(tab.id)}>
          {tab.label}
        </button>
      ))}
    </div>
  );
}
