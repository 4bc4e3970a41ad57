/** The report of the selected profile: asked for, waited for, kept. */

import { batch, computed, effect, signal } from '@preact/signals';
import { getProgress, getReport } from '../api/client';
import { ledgerOf, type Ledger } from '../api/ledger';
import type { ErrorInfo, ProfileReport, ProfileState } from '../api/types.gen';
import { keyText, type ProfileKey } from '../base/selection';
import { perWhat } from '../base/words';
import { faultInfo, reach } from './connection';
import { gatherFewRanks, noteRun } from './ranks';
import { noteState, selected, selectedKey } from './runs';

interface Loaded { report: ProfileReport; state: ProfileState }

const reports = signal<ReadonlyMap<string, Loaded>>(new Map());

/** What was last loaded of the selected profile; stays while it is loaded anew. */
export const loaded = computed<Loaded | null>(() =>
  (selectedKey.value ? reports.value.get(keyText(selectedKey.value)) ?? null : null));

export const report = computed<ProfileReport | null>(() => loaded.value?.report ?? null);

/** The account of the step; null in reports from before there was one. */
export const ledger = computed<Ledger | null>(() => (report.value ? ledgerOf(report.value) : null));

/** Length of the step that shares are shares of. */
export const stepNs = computed<number | null>(() => ledger.value?.step_ns.median ?? report.value?.steps.median_ns ?? null);

/** What costs and savings of the report are counted per. */
export const per = computed(() => perWhat(report.value?.steps.basis ?? 'none'));

/** How far the analysis of the selected profile is; null when none is going on. */
export const working = signal<ProfileState | null>(null);

/** Why there is no report, when the fault is not the profile's. */
export const reportError = signal<ErrorInfo | null>(null);

/** The file has changed since the report on the screen was made. */
export const stale = computed<boolean>(() =>
  loaded.value !== null && selected.value !== null && working.value === null
  && selected.value.profile.state !== 'error'
  && loaded.value.state.recording !== selected.value.profile.recording);

/** The findings on the screen are those of the analysis that goes on. */
export const unfinished = computed<boolean>(() =>
  loaded.value !== null && loaded.value.state.state !== 'done' && loaded.value.state.version === working.value?.version);

/** The same file is analysed again, since more is known of it: that report takes the place of this one unasked. */
export const renewed = computed<boolean>(() =>
  loaded.value !== null && selected.value !== null
  && loaded.value.state.recording === selected.value.profile.recording
  && loaded.value.state.version !== selected.value.profile.version);

const ASK_AGAIN_MS = 1000;
let turn = new AbortController();
let onItsWay: ProfileKey | null = null;

/** Loads whatever profile is selected, from now on. */
export function followSelection(): void {
  effect(() => {
    if (selectedKey.value) void load(selectedKey.value);
  });
}

export async function load(key: ProfileKey): Promise<void> {
  turn.abort();
  turn = new AbortController();
  const { signal: given } = turn;
  onItsWay = key;
  working.value = null;
  reportError.value = null;
  try {
    while (!(await loadOnce(key, given))) await pause(ASK_AGAIN_MS); // a stream that was cut off
  } catch (error) {
    if (!given.aborted) reportError.value = faultInfo(error);
  } finally {
    if (!given.aborted) {
      working.value = null;
      onItsWay = null;
    }
  }
}

/** The selected profile is being asked for. */
export const isOnItsWay = (): boolean => onItsWay !== null && onItsWay === selectedKey.peek();

/** One question, and when the analysis is still going on, its progress to the end. True when there is an end. */
async function loadOnce(key: ProfileKey, given: AbortSignal): Promise<boolean> {
  if (await ask(key, given)) return true;
  let last: ProfileState | null = null;
  for await (const state of getProgress(key, given)) {
    const isNew = state.reported && !last?.reported;
    last = state;
    working.value = state;
    if (isNew && !isOver(state)) await ask(key, given); // the findings; what stands beside them follows
  }
  return last !== null && isOver(last) && ask(key, given);
}

async function ask(key: ProfileKey, given: AbortSignal): Promise<boolean> {
  const answer = await reach(getReport({ ...key }, given));
  given.throwIfAborted();
  const of = (each: { worker: string; span: string }): boolean => each.worker === key.worker && each.span === key.span;
  const state = answer.states.find(of);
  const found = answer.report.profiles.find(of);
  const isDone = state !== undefined && isOver(state);
  if (!isDone) working.value = state ?? null;
  if (!state || !(isDone || state.reported)) return false;
  batch(() => {
    noteRun(key.run, answer);
    if (found) reports.value = new Map(reports.peek()).set(keyText(key), { report: found, state });
    noteState(key.run, state);
  });
  if (isDone) gatherFewRanks(key);
  return isDone;
}

const isOver = (state: ProfileState): boolean => state.state === 'done' || state.state === 'error';
const pause = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, ms); });
