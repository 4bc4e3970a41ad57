/** The report of the selected profile: requested, awaited, cached. */

import { batch, computed, effect, signal } from '@preact/signals';
import { getProgress, getReport } from '../api/client';
import { ledgerOf, type Ledger } from '../api/ledger';
import type { ErrorInfo, ProfileReport, ProfileState } from '../api/types.gen';
import { keyText, type ProfileKey } from '../base/selection';
import { perWhat } from '../base/words';
import { reach } from './connection';
import { gatherFewRanks, noteRun } from './ranks';
import { polled, resource } from './resource';
import { boarding, noteState, selected, selectedKey } from './runs';

interface Loaded { report: ProfileReport; state: ProfileState }

/** Result of an analysis: without a report if the profile could not be read. */
interface Outcome { loaded: Loaded | null }

const reports = resource<Outcome>({ keep: Infinity, alone: true });
const shown = computed<string>(() => (selectedKey.value ? keyText(selectedKey.value) : ''));

/** The last result loaded for the selected profile; stays while it is loaded again. */
export const loaded = computed<Loaded | null>(() => reports.answers.value.get(shown.value)?.loaded ?? null);

export const report = computed<ProfileReport | null>(() => loaded.value?.report ?? null);

/** The account of the step; null if there is nothing to account for. */
export const ledger = computed<Ledger | null>(() => (report.value ? ledgerOf(report.value) : null));

/** Duration of the step that shares refer to. */
export const stepNs = computed<number | null>(() => ledger.value?.step_ns.median ?? report.value?.steps.median_ns ?? null);

/** The unit that costs and savings of the report are counted per. */
export const per = computed(() => perWhat(report.value?.steps.basis ?? 'none'));

const progress = signal<ProfileState | null>(null);

/** Progress of the selected profile's analysis; null if none runs. */
export const working = computed<ProfileState | null>(() => (reports.asking.value.has(shown.value) ? progress.value : null));

/** The reason for a missing report, unless the profile itself is at fault. */
export const reportError = computed<ErrorInfo | null>(() => reports.failures.value.get(shown.value) ?? null);

/** The file has changed since the report on the screen was made. */
export const stale = computed<boolean>(() =>
  loaded.value !== null && selected.value !== null && working.value === null
  && selected.value.profile.state !== 'error'
  && loaded.value.state.recording !== selected.value.profile.recording);

/** The findings on the screen are those of the running analysis. */
export const unfinished = computed<boolean>(() =>
  loaded.value !== null && loaded.value.state.state !== 'done' && loaded.value.state.version === working.value?.version);

/** The same file is analysed again because more is known about it: that report replaces this one automatically. */
export const renewed = computed<boolean>(() =>
  loaded.value !== null && selected.value !== null
  && loaded.value.state.recording === selected.value.profile.recording
  && loaded.value.state.version !== selected.value.profile.version);

const ASK_AGAIN_MS = 1000;

/** The list of all runs needs no report of one. */
const wantedKey = computed<ProfileKey | null>(() => (boarding.value ? null : selectedKey.value));

/** Loads whatever profile is selected, from now on. */
export function followSelection(): void {
  effect(() => {
    if (wantedKey.value) void load(wantedKey.value);
  });
}

export async function load(key: ProfileKey): Promise<void> {
  progress.value = null;
  reports.forgive(keyText(key));
  await reports.ask(keyText(key), (given, show) => polled(() => loadOnce(key, given, (last) => show({ loaded: last })), given, ASK_AGAIN_MS));
}

/** The selected profile is being requested. */
export const isOnItsWay = (): boolean => reports.asking.peek().has(shown.peek());

/** One request, and if the analysis still runs, its progress to the end. Null if the stream was cut off. */
async function loadOnce(key: ProfileKey, given: AbortSignal, show: (loaded: Loaded) => void): Promise<Outcome | null> {
  const known = await ask(key, given, show);
  if (known) return known;
  let last: ProfileState | null = null;
  for await (const state of getProgress(key, given)) {
    given.throwIfAborted();
    const isNew = state.reported && !last?.reported;
    last = state;
    progress.value = state;
    if (isNew && !isOver(state)) await ask(key, given, show); // the findings; the tables beside them follow
  }
  return last !== null && isOver(last) ? ask(key, given, show) : null;
}

/** Stores the server's result; returns it once it is complete. */
async function ask(key: ProfileKey, given: AbortSignal, show: (loaded: Loaded) => void): Promise<Outcome | null> {
  const answer = await reach(getReport({ ...key }, given));
  given.throwIfAborted();
  const of = (each: { worker: string; span: string }): boolean => each.worker === key.worker && each.span === key.span;
  const state = answer.states.find(of);
  const found = answer.report.profiles.find(of);
  const isDone = state !== undefined && isOver(state);
  if (!isDone) progress.value = state ?? null;
  if (!state || !(isDone || state.reported)) return null;
  batch(() => {
    noteRun(key.run, answer);
    if (found) show({ report: found, state });
    noteState(key.run, state);
  });
  if (!isDone) return null;
  gatherFewRanks(key);
  return { loaded: reports.answers.peek().get(keyText(key))?.loaded ?? null };
}

const isOver = (state: ProfileState): boolean => state.state === 'done' || state.state === 'error';
