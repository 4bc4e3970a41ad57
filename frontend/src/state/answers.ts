/** Tables and charts of the selected profile: asked for when shown, kept, asked for again on a reload. */

import { signal, type Signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { getCpu, getMemory, getModules, getRanks, getTimelineLanes } from '../api/client';
import type { ErrorInfo } from '../api/types.gen';
import { keyText } from '../base/selection';
import { faultInfo, gone, reach } from './connection';
import { loaded, stale } from './profile';
import { ranksKnown, ranksPending } from './ranks';
import { selectedKey } from './runs';

export type Answered<A> =
  | { kind: 'loading' }
  | { kind: 'failed'; error: ErrorInfo | null; again: () => void }
  | { kind: 'ready'; answer: A };

/** What an answer is about, and what else makes it worth asking again. */
interface Subject { of: string; grown: string }

interface Resource<A> {
  about: () => Subject;
  ask: (query: Record<string, string>, given: AbortSignal) => Promise<A>;
  /** What was last said, and of which profile. */
  known: Signal<{ of: string; answer: A } | null>;
  failed: Signal<{ of: string; error: ErrorInfo | null } | null>;
}

const resource = <A>(ask: Resource<A>['ask'], about = shownProfile): Resource<A> => ({ about, ask, known: signal(null), failed: signal(null) });

export const modules = resource(getModules);
export const memory = resource(getMemory);
export const cpu = resource(getCpu);
export const timelineLanes = resource(getTimelineLanes);
export const rankTable = resource(({ run = '' }, given) => getRanks({ run }, given), shownRun);

/** How often TensorBoard has reloaded: what is shown is asked for again, and its ETag says whether it is the same. */
export const reloads = signal(0);

/** Names the recording on the screen; it stays the same when the recording is only analysed again. */
export const shownVersion = (): string =>
  (selectedKey.value ? `${keyText(selectedKey.value)} ${loaded.value?.state.recording ?? 0}` : '');

function shownProfile(): Subject {
  return { of: shownVersion(), grown: '' };
}

/** The run's ranks become more while they are read. */
function shownRun(): Subject {
  return { of: selectedKey.value?.run ?? '', grown: `${ranksKnown.value} ${ranksPending.value}` };
}

/** What is on the screen stays as it is while a newer recording waits to be loaded. */
export const shownReload = (): number => (stale.value ? -1 : reloads.value);

/** An answer for a component. A known one is shown while it is asked for again. */
export function useAnswer<A>({ about, ask, known, failed }: Resource<A>): Answered<A> {
  const [tries, setTries] = useState(0);
  const { of, grown } = about();
  const reload = shownReload();
  const offline = gone.value;
  useEffect(() => {
    const key = selectedKey.peek();
    if (!key || reload < 0) return undefined;
    const turn = new AbortController();
    reach(ask({ ...key }, turn.signal)).then((answer) => {
      known.value = { of, answer };
      failed.value = null;
    }).catch((error: unknown) => {
      if (!turn.signal.aborted) failed.value = { of, error: faultInfo(error) };
    });
    return () => turn.abort();
  }, [of, grown, ask, known, failed, reload, tries, offline]);
  if (known.value?.of === of) return { kind: 'ready', answer: known.value.answer };
  if (failed.value?.of === of) return { kind: 'failed', error: failed.value.error, again: () => setTries((before) => before + 1) };
  return { kind: 'loading' };
}
