/** True if the list and the detail are side by side, false if they take turns. */

import { signal } from '@preact/signals';

export const NARROW_PX = 700; // the style sheet has the same limit

export const narrow = signal(false);

export function watchViewport(): void {
  const media = matchMedia(`(max-width: ${NARROW_PX - 0.02}px)`);
  const apply = (): void => { narrow.value = media.matches; };
  apply();
  media.addEventListener('change', apply);
}
