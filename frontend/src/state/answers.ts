/** Tables and charts of the selected profile: requested when shown, cached, and requested again on a reload. */

import { signal } from '@preact/signals';
import { getCpu, getFiles, getFlame, getMemory, getModules, getRanks, getRoofline, getTimelineLanes } from '../api/client';
import { keyText, NO_KEY, type ProfileKey } from '../base/selection';
import type { View } from '../base/views';
import { loaded, stale } from './profile';
import { ranksKnown, ranksPending } from './ranks';
import { resource, useResource, type Answered, type Resource } from './resource';
import { selectedKey } from './runs';

/** The subject of an answer, and what else makes it worth requesting again. */
interface Subject { of: string; grown: string }

interface Table<A> {
  known: Resource<A>;
  ask: (query: ProfileKey, given: AbortSignal) => Promise<A>;
  about: () => Subject;
}

const table = <A>(ask: Table<A>['ask'], about = shownProfile): Table<A> => ({ known: resource(), ask, about });

export const modules = table(getModules);
export const memory = table(getMemory);
export const cpu = table(getCpu);
export const sourceFiles = table(getFiles);
export const flame = table(getFlame);
export const roofline = table(getRoofline);
export const timelineLanes = table(getTimelineLanes);
export const rankTable = table(({ run }, given) => getRanks({ run }, given), shownRun);

/** Number of TensorBoard's reloads: visible answers are requested again, and their ETag shows if they have changed. */
export const reloads = signal(0);

/** Identifies the recording on the screen; stays the same if the recording is only analysed again. */
export const shownVersion = (): string =>
  (selectedKey.value ? `${keyText(selectedKey.value)} ${loaded.value?.state.recording ?? 0}` : '');

function shownProfile(): Subject {
  return { of: shownVersion(), grown: '' };
}

/** The run's ranks become more while they are read. */
function shownRun(): Subject {
  return { of: selectedKey.value ? `run ${selectedKey.value.run}` : '', grown: `${ranksKnown.value} ${ranksPending.value}` };
}

/** Answers on the screen stay the same, null, while a newer recording waits to be loaded. */
export const shownReload = (): number | null => (stale.value ? null : reloads.value);

/** An answer for a component. */
export function useAnswer<A>({ known, ask, about }: Table<A>): Answered<A> {
  const { of, grown } = about();
  const reload = shownReload();
  return useResource(known, of, (given) => ask(selectedKey.peek() ?? NO_KEY, given), reload === null ? null : `${reload} ${grown}`);
}

function early<A>({ known, ask, about }: Table<A>): void {
  const { of } = about();
  if (of && !known.answers.peek().has(of) && !known.asking.peek().has(of)) void known.ask(of, (given) => ask(selectedKey.peek() ?? NO_KEY, given));
}

const EARLY: Partial<Record<View, () => void>> = {
  modules: () => early(modules), memory: () => early(memory), cpu: () => early(cpu), flame: () => early(flame), roofline: () => early(roofline), source: () => early(sourceFiles),
  timeline: () => early(timelineLanes), ranks: () => early(rankTable),
};

/** Requests the data of a view that is about to be opened. */
export const askAhead = (view: View): void => EARLY[view]?.();
