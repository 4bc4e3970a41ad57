/** A message that has the page, or a pane, to itself. */

import type { ComponentChildren } from 'preact';

interface Props { title: string; children: ComponentChildren }

export const Hero = ({ title, children }: Props) => (
  <div class="hero">
    <h1>{title}</h1>
    {children}
  </div>
);
