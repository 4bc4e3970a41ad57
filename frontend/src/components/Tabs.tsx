/** The switch between views: one tab stop, arrows move. */

interface Tab<T extends string> { id: T; label: string }

interface Props<T extends string> { label: string; tabs: readonly Tab<T>[]; chosen: T; panel: string; onChoose: (id: T) => void }

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function Tabs<T extends string>({ label, tabs, chosen, panel, onChoose }: Props<T>) {
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
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={step}>
      {tabs.map((tab) => (
        <button type="button" role="tab" class="tab" data-tab={tab.id} aria-selected={tab.id === chosen} aria-controls={panel}
          tabIndex={tab.id === chosen ? 0 : -1} onClick={() => onChoose(tab.id)}>
          {tab.label}
        </button>
      ))}
    </div>
  );
}
