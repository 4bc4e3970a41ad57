/** The current state of the page, one of a few. */

import { computed, effect } from '@preact/signals';
import type { ErrorInfo, Problem, ProfileState } from '../api/types.gen';
import { VIEWS } from '../base/views';
import { gone } from './connection';
import { report, reportError, working } from './profile';
import { route } from './route';
import { boarding, runs, runsError, selected, view } from './runs';

export type Screen =
  | { kind: 'starting' }
  | { kind: 'scanning' }
  | { kind: 'no-traces'; logdirs: readonly string[] }
  | { kind: 'error'; error: ErrorInfo }
  | { kind: 'failed'; problem: Problem }
  | { kind: 'working'; state: ProfileState }
  | { kind: 'ready' };

export const screen = computed<Screen>(() => {
  const answer = runs.value;
  if (!answer) return runsError.value ? { kind: 'error', error: runsError.value } : { kind: 'starting' };
  const profile = selected.value?.profile;
  if (!profile) return answer.scanning ? { kind: 'scanning' } : { kind: 'no-traces', logdirs: answer.logdirs };
  if (report.value) return { kind: 'ready' };
  if (working.value) return { kind: 'working', state: working.value };
  if (reportError.value) return { kind: 'error', error: reportError.value };
  if (broken.value && profile.problem) return { kind: 'failed', problem: profile.problem };
  return gone.value ? { kind: 'starting' } : { kind: 'working', state: profile };
});

/**
 * Views that need no report of the selected profile: a comparison, whose sides are profiles of their own, and the list
 * of all runs.
 */
export const comparing = computed<boolean>(() => (route.value.view === 'compare' && (runs.value?.runs.length ?? 0) > 0) || boarding.value);

/** Names the run and the view in the page's title, for the browser's tabs and its history. */
export function watchTitle(): void {
  effect(() => {
    const label = VIEWS.find(({ id }) => id === view.value)?.label ?? '';
    document.title = [...(selected.value && !comparing.value ? [selected.value.run || '.'] : []), label, 'TorchTidy'].join(' · ');
  });
}

/** The analysis of the selected profile failed; a report on the screen is of an earlier recording. */
export const broken = computed<boolean>(() => selected.value?.profile.state === 'error');

/** The unreadable part of the profile on the screen, or the reason why its newer recording could not be read. */
export const problem = computed<Problem | null>(() => (report.value ? selected.value?.profile.problem ?? null : null));
