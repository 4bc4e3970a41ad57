/** A titled part of the detail. */

import type { ComponentChildren } from 'preact';

interface Props { title: string; aside?: ComponentChildren; children: ComponentChildren }

export const Section = ({ title, aside, children }: Props) => (
  <section class="section">
    <div class="section-head"><h2>{title}</h2>{aside}</div>
    {children}
  </section>
);
