/** A titled part of the detail. Evidence and explanations of a finding are folded until the user opens them. */

import type { ComponentChildren } from 'preact';
import { isUnfolded, unfold, type Folded } from '../../state/folds';

interface Props { title: string; aside?: ComponentChildren; children: ComponentChildren }

export const Section = ({ title, aside, children }: Props) => (
  <section class="section">
    <div class="section-head"><h2>{title}</h2>{aside}</div>
    {children}
  </section>
);

interface FoldProps { id: Folded; title: string; note?: string; children: () => ComponentChildren }

/** Its content is rendered once it is open. */
export function Fold({ id, title, note = '', children }: FoldProps) {
  const open = isUnfolded(id);
  return (
    <section class="section fold">
      <details open={open} onToggle={(event) => unfold(id, event.currentTarget.open)}>
        <summary><h2>{title}</h2>{note && <span class="muted">{note}</span>}</summary>
        {open && children()}
      </details>
    </section>
  );
}
