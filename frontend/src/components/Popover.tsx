/** A button with a popover beside it: the browser closes it with Esc and with a click elsewhere. */

import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from './Icon';

interface Props {
  label: string;
  icon: IconName;
  /** True if the label is visible on the button; otherwise only for screen readers and as a tooltip. */
  worded?: boolean;
  children: (close: () => void) => ComponentChildren;
}

const GAP_PX = 4;

export function Popover({ label, icon, worded = false, children }: Props) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  const close = (): void => panel.current?.hidePopover();
  return (
    <span class="popover-place">
      <button type="button" ref={button} class={worded ? 'button' : 'icon-button'} popoverTarget={id} aria-expanded={open}
        {...(worded ? {} : { 'aria-label': label, title: label })}>
        <Icon name={icon} />{worded && label}
      </button>
      <div id={id} ref={panel} class="popover" popover="auto" role="group" aria-label={label}
        onBeforeToggle={(event) => { if (event.newState === 'open' && button.current) place(event.currentTarget, button.current); }}
        onToggle={(event) => setOpen(event.newState === 'open')}>
        {open && children(close)}
      </div>
    </span>
  );
}

/** Below the button, or above it in the lower half of the window, and aligned with the nearer side. */
function place(panel: HTMLElement, button: HTMLElement): void {
  const at = button.getBoundingClientRect();
  const { innerWidth: width, innerHeight: height } = window;
  const below = at.top < height / 2;
  const left = at.left < width / 2;
  Object.assign(panel.style, {
    top: below ? `${at.bottom + GAP_PX}px` : 'auto', bottom: below ? 'auto' : `${height - at.top + GAP_PX}px`,
    left: left ? `${Math.max(GAP_PX, at.left)}px` : 'auto', right: left ? 'auto' : `${Math.max(GAP_PX, width - at.right)}px`,
    maxHeight: `${(below ? height - at.bottom : at.top) - 4 * GAP_PX}px`, maxWidth: `${(left ? width - at.left : at.right) - 2 * GAP_PX}px`,
  });
}
