/** What the logdir holds, and which profile of it is selected. */

import { computed, effect, signal } from '@preact/signals';
import { getRuns } from '../api/client';
import type { ErrorInfo, ProfileState, RunsAnswer } from '../api/types.gen';
import { keyText, select, type ProfileKey } from '../base/selection';
import { faultInfo, reach } from './connection';
import { toast } from './notices';
import { route } from './route';

export const runs = signal<RunsAnswer | null>(null);
export const runsError = signal<ErrorInfo | null>(null);

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

const SCAN_PERIOD_MS = 1000;
let scan: ReturnType<typeof setTimeout> | undefined;

/** Asks what the logdir holds, again and again while the server's first look at it is going on. */
export async function refreshRuns(): Promise<void> {
  clearTimeout(scan);
  try {
    const answer = await reach(getRuns());
    runs.value = answer;
    runsError.value = null;
    if (answer.scanning) scan = setTimeout(() => void refreshRuns(), SCAN_PERIOD_MS);
  } catch (error) {
    runsError.value = faultInfo(error);
  }
}

/** Takes over what the server said of one profile in another answer. */
export function noteState(run: string, state: ProfileState): void {
  const known = runs.peek();
  if (!known) return;
  const same = (profile: ProfileState): boolean => profile.worker === state.worker && profile.span === state.span;
  runs.value = {
    ...known,
    runs: known.runs.map((each) => (each.run !== run ? each
      : { ...each, profiles: each.profiles.map((profile) => (same(profile) ? state : profile)) })),
  };
}
