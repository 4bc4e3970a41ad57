/** Text that somebody types, and what is asked for once the typing rests. */

import { signal, type ReadonlySignal } from '@preact/signals';

const SETTLED_MS = 200;

export interface TypedText {
  /** As it stands in the input. */
  text: ReadonlySignal<string>;
  /** Without space around it, a moment later. */
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
