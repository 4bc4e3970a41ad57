/** Short texts for the user: a toast that disappears, and announcements for screen readers. */

import { signal } from '@preact/signals';

export const toastText = signal('');
export const announcement = signal('');

const TOAST_MS = 5000;
let fading: ReturnType<typeof setTimeout> | undefined;

export function toast(text: string): void {
  toastText.value = text;
  clearTimeout(fading);
  fading = setTimeout(() => { toastText.value = ''; }, TOAST_MS);
}

export function announce(text: string): void {
  announcement.value = text;
}
