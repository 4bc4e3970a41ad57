/**
 * Changes while the page is open: new runs, finished files, new recordings of a job. Nothing on the screen is replaced.
 */

import { computed, signal } from '@preact/signals';
import { getRuns } from '../api/client';
import type { RunsAnswer } from '../api/types.gen';
import { keyText, select, type ProfileKey } from '../base/selection';
import { revalidate } from './actions';
import { faultInfo, gone, reach } from './connection';
import { isOnItsWay, load, loaded, renewed } from './profile';
import { refreshRun } from './ranks';
import { go, route } from './route';
import { boarding, runs, selected, selectedKey, takeRuns } from './runs';

/** The recordings that appeared after the page was opened. */
const arrived = signal<ReadonlySet<string>>(new Set());

const keysOf = (answer: RunsAnswer): ProfileKey[] => answer.runs.flatMap(({ run, profiles }) => profiles.map(({ worker, span }) => ({ run, worker, span })));

/** A newer recording of the worker on the screen that appeared after the page was opened. */
export const newer = computed<ProfileKey | null>(() => {
  const now = selectedKey.value;
  const profiles = runs.value?.runs.find(({ run }) => run === now?.run)?.profiles ?? [];
  const last = profiles.findLast(({ worker }) => worker === now?.worker);
  if (!now || !last || last.span === now.span) return null;
  const key = { run: now.run, worker: last.worker, span: last.span };
  return arrived.value.has(keyText(key)) ? key : null;
});

let looking = false;

/** Requests the content of the logdir, without an expensive search of the disk; adds what is new. */
export async function look(): Promise<void> {
  const before = runs.peek();
  if (looking || !before || before.scanning) return;
  looking = true;
  const wasGone = gone.peek();
  try {
    const answer = await reach(getRuns({ look: 'calm' }));
    if (wasGone) await revalidate();
    else if (runs.peek() === before && JSON.stringify(answer) !== JSON.stringify(before)) takeOver(answer); // or something newer came in meanwhile
  } catch (error) {
    faultInfo(error); // the next look asks again
  } finally {
    looking = false;
  }
}

function takeOver(answer: RunsAnswer): void {
  const shown = selectedKey.peek();
  const known = new Set(keysOf(runs.peek() ?? answer).map(keyText));
  const fresh = keysOf(answer).map(keyText).filter((key) => !known.has(key));
  if (fresh.length > 0) arrived.value = new Set([...arrived.peek(), ...fresh]);
  const next = select(answer.runs, route.peek());
  const stays = shown !== null && keysOf(answer).some((key) => keyText(key) === keyText(shown));
  if (stays && !boarding.peek() && next && (next.run !== shown.run || next.profile.span !== shown.span)) go({ ...shown }, 'replace'); // or another one would replace it
  takeRuns(answer);
  const key = selectedKey.peek();
  if (!key || boarding.peek() || isOnItsWay()) return;
  if (loaded.peek() ? renewed.peek() : selected.peek()?.profile.state !== 'error') void load(key);
  else if (fresh.length > 0) void refreshRun();
}
