/** The content of the logdir, and its selected profile. */

import { computed, effect } from '@preact/signals';
import { getRuns } from '../api/client';
import type { ErrorInfo, ProfileState, RunsAnswer } from '../api/types.gen';
import { keyText, select, type ProfileKey } from '../base/selection';
import type { View } from '../base/views';
import { toast } from './notices';
import { polled, resource } from './resource';
import { go, route } from './route';

const LOGDIR = 'logdir'; // there is one
const logdir = resource<RunsAnswer>();

export const runs = computed<RunsAnswer | null>(() => logdir.answers.value.get(LOGDIR) ?? null);
export const runsError = computed<ErrorInfo | null>(() => logdir.failures.value.get(LOGDIR) ?? null);

export const selected = computed(() => select(runs.value?.runs ?? [], route.value));

/** The selected profile's name: a text signal, which changes only when another profile is selected. */
const selectedText = computed(() => (selected.value ? keyText({
  run: selected.value.run, worker: selected.value.profile.worker, span: selected.value.profile.span,
}) : ''));

export const selectedKey = computed<ProfileKey | null>(() => {
  const [run, worker, span]: string[] = selectedText.value ? JSON.parse(selectedText.value) : [];
  return run !== undefined && worker !== undefined && span !== undefined ? { run, worker, span } : null;
});

const namedRun = computed(() => route.value.run);
const isMissing = computed(() => {
  const { scanning = true, runs: known = [] } = runs.value ?? {};
  return namedRun.value !== '' && !scanning && known.length > 0 && known.every(({ run }) => run !== namedRun.value);
});

/** Announces an address that names a missing run. It stays in the address: the run may still appear. */
export function watchRun(): void {
  effect(() => {
    if (isMissing.value) toast(`There is no run “${namedRun.value}” here.${selected.value ? ' The page shows the only run instead.' : ''}`);
  });
}

/**
 * The view on the screen. If the address names no existing run, that is the list of all runs. Comparisons are exempt,
 * since they name their own runs, and so is a logdir with a single run, which has no list.
 */
export const view = computed<View>(() => {
  const { scanning = true, runs: known = [] } = runs.value ?? {};
  const isNone = !scanning && known.length > 1 && selected.value === null && route.value.view !== 'compare';
  return isNone ? 'runs' : route.value.view;
});

/** True if the list of runs is on the screen. */
export const boarding = computed<boolean>(() => view.value === 'runs' && (runs.value?.runs.length ?? 0) > 1);

/** With a single run there is no list of runs: it is opened at once. */
export function watchRuns(): void {
  effect(() => {
    const { scanning = true, runs: known = [] } = runs.value ?? {};
    if (route.value.view === 'runs' && !scanning && known.length <= 1) go({ view: 'findings' }, 'replace');
  });
}

const SCAN_PERIOD_MS = 1000;

/** Requests the content of the logdir once, and repeatedly during the server's first search of it. */
export const refreshRuns = (): Promise<void> => new Promise((resolve) => {
  void logdir.ask(LOGDIR, (given, show) => polled(async () => {
    const answer = await getRuns({}, given);
    show(answer);
    resolve();
    return answer.scanning ? null : answer;
  }, given, SCAN_PERIOD_MS)).then(() => resolve());
});

/** Stores the current content of the logdir. */
export const takeRuns = (answer: RunsAnswer): void => logdir.put(LOGDIR, answer);

/** Stores the state of one profile from another answer. */
export function noteState(run: string, state: ProfileState): void {
  const answer = runs.peek();
  if (!answer) return;
  const same = (profile: ProfileState): boolean => profile.worker === state.worker && profile.span === state.span;
  logdir.put(LOGDIR, {
    ...answer,
    runs: answer.runs.map((each) => (each.run !== run ? each
      : { ...each, profiles: each.profiles.map((profile) => (same(profile) ? state : profile)) })),
  });
}
