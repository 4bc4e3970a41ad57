/** A modal window: the browser keeps the focus in it and Esc closes it. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { IconButton } from './Button';

interface Props { title: string; open: boolean; onClose: () => void; children: ComponentChildren }

export function Dialog({ title, open, onClose, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog class="dialog" ref={dialog} onClose={onClose} aria-label={title}>
      <header class="dialog-head">
        <h2>{title}</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      {open && children}
    </dialog>
  );
}
