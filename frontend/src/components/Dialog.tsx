/** A modal window, open while it is rendered: the browser keeps the focus in it, and returns it when Esc closes it. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { IconButton } from './Button';

interface Props { title: string; onClose: () => void; children: ComponentChildren }

export function Dialog({ title, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="dialog" ref={dialog} onClose={onClose} aria-label={title}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <IconButton icon="close" label="Close" onClick={() => dialog.current?.close()} />
      </header>
      {children}
    </dialog>
  );
}
