/** The next target of the keyboard focus. The component that draws it moves the focus and clears the request. */

import { signal, useSignalEffect } from '@preact/signals';
import type { RefObject } from 'preact';

export type FocusTarget = 'row' | 'heading' | 'filter' | 'timeline';

export const wanted = signal<FocusTarget | null>(null);

/** Gives an element the focus when it becomes the requested one. */
export function useWantedFocus(target: FocusTarget, element: RefObject<HTMLElement | null>, isMeant = (): boolean => true): void {
  useSignalEffect(() => {
    if (wanted.value !== target || !isMeant() || !element.current) return;
    wanted.value = null;
    element.current.focus();
  });
}
