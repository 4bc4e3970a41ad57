/** A message that fills the page, or a pane. */

import type { ComponentChildren } from 'preact';

interface Props { title: string; children: ComponentChildren }

export const Hero = ({ title, children }: Props) => (
  <div class="hero">
    <h1>{title}</h1>
    {children}
  </div>
);
