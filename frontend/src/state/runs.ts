/** What the logdir holds, and which profile of it is selected. */

import { computed, effect } from '@preact/signals';
import { getRuns } from '../api/client';
import type { ErrorInfo, ProfileState, RunsAnswer } from '../api/types.gen';
import { keyText, select, type ProfileKey } from '../base/selection';
import { toast } from './notices';
import { polled, resource } from './resource';
import { go, route } from './route';

const LOGDIR = 'logdir'; // there is one
const logdir = resource<RunsAnswer>();

export const runs = computed<RunsAnswer | null>(() => logdir.answers.value.get(LOGDIR) ?? null);
export const runsError = computed<ErrorInfo | null>(() => logdir.failures.value.get(LOGDIR) ?? null);

export const selected = computed(() => select(runs.value?.runs ?? [], route.value));

/** The selected profile's name: a signal of text, which changes only when another profile is selected. */
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

/** Says when the address names a run that is not there. It stays in the address: the run may still be on its way. */
export function watchRun(): void {
  effect(() => {
    if (isMissing.value) toast(`There is no run “${namedRun.value}” here. Another one is shown.`);
  });
}

/** Whether the list of runs is on the screen: with a single run there is none. */
export const boarding = computed<boolean>(() => route.value.view === 'runs' && (runs.value?.runs.length ?? 0) > 1);

/** With a single run there is no list of runs: it is opened at once. */
export function watchRuns(): void {
  effect(() => {
    const { scanning = true, runs: known = [] } = runs.value ?? {};
    if (route.value.view === 'runs' && !scanning && known.length <= 1) go({ view: 'findings' }, 'replace');
  });
}

const SCAN_PERIOD_MS = 1000;

/** Asks what the logdir holds, once, and again and again while the server's first look at it is going on. */
export const refreshRuns = (): Promise<void> => new Promise((resolve) => {
  void logdir.ask(LOGDIR, (given, show) => polled(async () => {
    const answer = await getRuns({}, given);
    show(answer);
    resolve();
    return answer.scanning ? null : answer;
  }, given, SCAN_PERIOD_MS)).then(() => resolve());
});

/** Takes over what the logdir holds by now. */
export const takeRuns = (answer: RunsAnswer): void => logdir.put(LOGDIR, answer);

/** Takes over what the server said of one profile in another answer. */
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
