/** Text that a user types, and its value once the typing rests. */

import { signal, type ReadonlySignal } from '@preact/signals';

const SETTLED_MS = 200;

export interface TypedText {
  /** The text in the input. */
  text: ReadonlySignal<string>;
  /** Without surrounding space, a moment later. */
  settled: ReadonlySignal<string>;
  type: (text: string) => void;
}

export function typedText(): TypedText {
  const text = signal('');
  const settled = signal('');
  let settling: ReturnType<typeof setTimeout> | undefined;
  return {
    text, settled,
    type: (typed) => {
      text.value = typed;
      clearTimeout(settling);
      settling = setTimeout(() => { settled.value = typed.trim(); }, SETTLED_MS);
    },
  };
}
