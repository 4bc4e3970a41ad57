/** Source files of the selected profile. */

import { useMemo, useState } from 'preact/hooks';
import { signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { getSource } from '../api/client';
import type { ErrorInfo, SourceAnswer } from '../api/types.gen';
import { keyText, type ProfileKey } from '../base/selection';
import { plainLines, type Line } from '../base/tokens';
import { faultInfo, gone, reach } from './connection';
import { highlight } from './highlight';
import { loaded } from './profile';
import { selectedKey } from './runs';

export type SourceState =
  | { kind: 'loading' }
  | { kind: 'failed'; error: ErrorInfo | null }
  | { kind: 'missing'; reason: string }
  | { kind: 'ready'; answer: SourceAnswer; lines: readonly Line[] };

const MOST_FILES = 24;
const files = new Map<string, Signal<SourceState>>();

/** A file's text: plain as soon as it is there, in colour a moment later. Asked for once; again after a failure. */
export function sourceOf(key: ProfileKey, version: number, file: string): ReadonlySignal<SourceState> {
  const name = `${keyText(key)} ${version} ${file}`;
  const known = files.get(name);
  if (known && known.peek().kind !== 'failed') return known;
  const state = signal<SourceState>({ kind: 'loading' });
  files.set(name, state);
  for (const oldest of [...files.keys()].slice(0, -MOST_FILES)) files.delete(oldest);
  void fetchInto(state, key, file);
  return state;
}

async function fetchInto(state: Signal<SourceState>, key: ProfileKey, file: string): Promise<void> {
  try {
    const answer = await reach(getSource({ ...key, file }));
    if (!answer.available) {
      state.value = { kind: 'missing', reason: answer.reason ?? '' };
      return;
    }
    state.value = { kind: 'ready', answer, lines: plainLines(answer.lines) };
    const lines = await highlight(answer.lines.join('\n'));
    if (lines?.length === answer.lines.length) state.value = { kind: 'ready', answer, lines };
  } catch (error) {
    state.value = { kind: 'failed', error: faultInfo(error) };
  }
}

/** The text of a file of the profile on the screen, for a component, and how to ask for it again after a failure. */
export function useSource(file: string): [SourceState, () => void] {
  const [tries, setTries] = useState(0);
  const key = selectedKey.value;
  const version = loaded.value?.state.recording ?? 0;
  const state = useMemo(() => (key ? sourceOf(key, version, file) : null), [key, version, file, gone.value, tries]);
  return [state?.value ?? { kind: 'loading' }, () => setTries((before) => before + 1)];
}
