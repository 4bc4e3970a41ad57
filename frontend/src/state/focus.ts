/** Where the keyboard focus should go next. Whoever draws that thing moves the focus and clears the wish. */

import { signal, useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';

export type FocusTarget = 'row' | 'heading' | 'filter' | 'timeline';

export const wanted = signal<FocusTarget | null>(null);

/** Gives an element the focus as soon as somebody wishes it and it is the one that is meant. */
export function useWantedFocus(target: FocusTarget, element: RefObject<HTMLElement | null>, isMeant = (): boolean => true): void {
  useSignalEffect(() => {
    if (wanted.value !== target || !isMeant() || !element.current) return;
    wanted.value = null;
    element.current.focus();
  });
}
