/** A bar across the page, or a box in it, about the current state. */

import type { ComponentChildren } from 'preact';
import { Icon } from './Icon';

interface Props { kind: 'info' | 'warning' | 'error'; children: ComponentChildren; action?: ComponentChildren }

export const Notice = ({ kind, children, action }: Props) => (
  <div class={`notice ${kind}`} role={kind === 'error' ? 'alert' : 'status'}>
    {kind !== 'info' && <Icon name="warning" />}
    <div class="notice-text">{children}</div>
    {action}
  </div>
);
