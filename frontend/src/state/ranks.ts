/** Data on several ranks of the run: it comes with each of their profiles, and grows as more are analysed. */

import { computed } from '@preact/signals';
import { getReport } from '../api/client';
import type { Finding, Outcome, ReportAnswer } from '../api/types.gen';
import { ranksText } from '../base/ranks';
import type { ProfileKey } from '../base/selection';
import { faultInfo, reach } from './connection';
import { polled, resource } from './resource';
import { refreshRuns, selected, selectedKey, runs } from './runs';

interface About { findings: readonly Finding[]; outcomes: readonly Outcome[]; ranks: readonly number[]; pending: number }

const NOTHING: About = { findings: [], outcomes: [], ranks: [], pending: 0 };
const known = resource<About>({ keep: Infinity, alone: true });

const about = computed<About>(() => known.answers.value.get(selectedKey.value?.run ?? '') ?? NOTHING);
export const runFindings = computed<readonly Finding[]>(() => about.value.findings);
export const runOutcomes = computed<readonly Outcome[]>(() => about.value.outcomes);
export const ranksKnown = computed<number>(() => about.value.ranks.length);
export const ranksPending = computed<number>(() => (severalWorkers.value ? about.value.pending : 0));

/** True if the other ranks are being analysed for the run. */
export const gathering = computed<boolean>(() => known.asking.value.size > 0);

/** `rank 3` for a finding about the run, empty for one about the profile. */
export const ranksOf = (finding: Finding): string =>
  (runFindings.value.includes(finding) ? ranksText(finding.ranks ?? [], about.value.ranks) : '');

const profilesOfRun = computed(() => runs.value?.runs.find(({ run }) => run === selected.value?.run)?.profiles ?? []);
const severalWorkers = computed(() => new Set(profilesOfRun.value.map(({ worker }) => worker)).size > 1);

/** True if there is anything to compare. */
export const hasRanks = computed(() => severalWorkers.value || ranksKnown.value > 1);

export function noteRun(run: string, { report, ranks, pending }: ReportAnswer): void {
  known.put(run, { findings: report.findings ?? [], outcomes: report.outcomes ?? [], ranks, pending });
}

/** Number of profiles that are analysed automatically; a large job's would keep a laptop busy for long. */
const UNASKED = 8;
const ASK_AGAIN_MS = 2000;

/** Once a profile is there: also the other ranks of a small run, since only together they show who waits for whom. */
export function gatherFewRanks(key: ProfileKey): void {
  if (known.asking.peek().has(key.run)) return;
  known.stop();
  if (ranksPending.peek() > 0 && profilesOfRun.peek().length <= UNASKED) void gatherRanks(key);
}

/** All ranks of the selected run, at the user's request. */
export function gatherSelected(): void {
  const key = selectedKey.peek();
  if (key) void gatherRanks(key);
}

/** On a reload: other ranks may have been recorded again. */
export async function refreshRun(): Promise<void> {
  const key = selectedKey.peek();
  if (!key || !severalWorkers.peek()) return;
  try {
    noteRun(key.run, await reach(getReport({ ...key })));
    gatherFewRanks(key);
  } catch (error) {
    faultInfo(error); // the next reload asks again
  }
}

/**
 * Starts the analysis of all ranks of the run, and adds their results as they are done. A reload asks again after a
 * failure.
 */
async function gatherRanks(key: ProfileKey): Promise<void> {
  const isWhole = await known.ask(key.run, (given) => polled(async () => {
    const answer = await getReport({ ...key, ranks: 'all' }, given);
    given.throwIfAborted();
    noteRun(key.run, answer);
    return answer.pending === 0 ? known.answers.peek().get(key.run) ?? null : null;
  }, given, ASK_AGAIN_MS));
  if (isWhole) await refreshRuns();
}
