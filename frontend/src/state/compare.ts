/** The comparison on the screen: its two sides, and what the server says about them. */

import { computed, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, getComparison, getReport } from '../api/client';
import type { CompareAnswer, ErrorInfo, FindingChange, Place, ProfileReport, ProfileState, ReportAnswer } from '../api/types.gen';
import { areSame, chosenSides, sidesText, type Side, type Sides } from '../base/sides';
import { keyText, type ProfileKey } from '../base/selection';
import { reloads } from './answers';
import { faultInfo, gone, reach } from './connection';
import { go, route } from './route';
import { refreshRuns, runs } from './runs';

export type SideName = keyof Sides;

/** What is compared: the address says, else the newest runs. Nothing while the logdir is first looked through. */
export const sides = computed<Sides | null>(() => {
  const answer = runs.value;
  if (!answer || answer.runs.length === 0) return null;
  const { compare, run } = route.value;
  if (compare.base.run !== null && compare.candidate.run !== null) return compare;
  return answer.scanning ? null : chosenSides(compare, answer.runs, run);
});

/** Has the address name what is compared, so that its link says the same tomorrow. */
export function nameSides(): void {
  const named = sides.peek();
  if (named && sidesText(named) !== sidesText(route.peek().compare)) go({ compare: named }, 'replace');
}

export const changeSide = (name: SideName, changes: Partial<Side>): void => alter(name, changes, 'push');

/** A walk through the steps is one entry in the history. */
export const chooseSteps = (name: SideName, steps: string): void => alter(name, { steps }, 'settle');

function alter(name: SideName, changes: Partial<Side>, how: 'push' | 'settle'): void {
  const now = sides.peek();
  if (now) go({ compare: { ...now, [name]: { ...now[name], ...changes } } }, how);
}

export function swapSides(): void {
  const now = sides.peek();
  if (now) go({ compare: { base: now.candidate, candidate: now.base } }, 'push');
}

/** Opens a finding in the recording that has it. */
export function openChange(change: FindingChange): void {
  go({ ...profileOf(change), view: 'findings', finding: change.id }, 'push');
}

export function openPlace(change: FindingChange, { file, line }: Place): void {
  go({ ...profileOf(change), view: 'source', file, line: String(line), finding: '' }, 'push');
}

/** What is gone is in the baseline, everything else in the candidate; what ranks show together, in any of its recordings. */
function profileOf({ state, worker = '', span = '' }: FindingChange): ProfileKey {
  const side = route.peek().compare[state === 'gone' ? 'base' : 'candidate'];
  return { run: side.run ?? '', worker: worker || side.rank, span: span || side.span };
}

/** The profiles of a side; of a rank that is given as a number, those that may be it. */
export function profilesOf({ run, rank, span }: Side): readonly ProfileState[] {
  const profiles = runs.value?.runs.find((each) => each.run === run)?.profiles ?? [];
  const named = profiles.filter((each) => each.worker === rank);
  return (named.length > 0 ? named : profiles).filter((each) => span === '' || each.span === span);
}

/** Changes as soon as one of the recordings is another one. */
const versionsText = ({ base, candidate }: Sides): string =>
  [base, candidate].flatMap((side) => profilesOf(side).map(({ worker, span, version }) => `${worker} ${span} ${version}`)).join('\n');

export interface Work { done: number; of: number; fraction: number; stage: string }

/** How far the analyses are that both sides need. */
export const work = computed<Work>(() => {
  const needed = sides.value ? [...new Set([...profilesOf(sides.value.base), ...profilesOf(sides.value.candidate)])] : [];
  const finished = needed.filter(isOver).length;
  const fractions = needed.map((profile) => (isOver(profile) ? 1 : profile.fraction));
  return {
    done: finished, of: needed.length, stage: needed.find(({ stage }) => stage)?.stage ?? '',
    fraction: needed.length > 0 ? fractions.reduce((sum, each) => sum + each, 0) / needed.length : 0,
  };
});

const isOver = ({ state }: ProfileState): boolean => state === 'done' || state === 'error';

export type Compared =
  | { kind: 'same' }
  | { kind: 'working' }
  | { kind: 'failed'; error: ErrorInfo | null; again: () => void }
  | { kind: 'ready'; answer: CompareAnswer; stale: boolean; again: () => void };

const known = signal<{ of: string; versions: string; answer: CompareAnswer } | null>(null);
const failed = signal<{ of: string; error: ErrorInfo | null } | null>(null);

const SETTLED_MS = 300; // a range of steps that grows step by step is asked for once
const ASK_AGAIN_MS = 1000;
const STILL_ANALYSING = 503;

/** The comparison for a component; a known one stays while it is asked for again. */
export function useComparison(now: Sides): Compared {
  const [tries, setTries] = useState(0);
  const of = sidesText(now);
  const offline = gone.value;
  const versions = versionsText(now);
  const stale = known.value?.of === of && known.value.versions !== versions;
  const reload = stale ? -1 : reloads.value;
  useEffect(() => {
    if (areSame(now) || reload < 0) return undefined;
    const turn = new AbortController();
    const timer = setTimeout(() => void ask(now, turn.signal), known.peek()?.of === of ? 0 : SETTLED_MS);
    return () => { clearTimeout(timer); turn.abort(); };
  }, [of, reload, tries, offline]);
  const again = (): void => {
    failed.value = null;
    if (stale) known.value = null;
    setTries((before) => before + 1);
  };
  if (areSame(now)) return { kind: 'same' };
  if (known.value?.of === of) return { kind: 'ready', answer: known.value.answer, stale, again };
  if (failed.value?.of === of) return { kind: 'failed', error: failed.value.error, again };
  return { kind: 'working' };
}

async function ask(now: Sides, given: AbortSignal): Promise<void> {
  const of = sidesText(now);
  const watch = setInterval(() => void refreshRuns(), ASK_AGAIN_MS); // they say how far the analyses are
  try {
    const answer = await analysed(() => reach(getComparison({ ...queryOf(now), limit: 0 }, given)), given);
    given.throwIfAborted();
    known.value = { of, versions: versionsText(now), answer };
    failed.value = null;
  } catch (error) {
    if (!given.aborted) failed.value = { of, error: faultInfo(error) };
  } finally {
    clearInterval(watch);
  }
}

/** Asks until the analyses are done. */
async function analysed<A>(question: () => Promise<A>, given: AbortSignal): Promise<A> {
  for (;;) {
    try {
      return await question();
    } catch (error) {
      if (!(error instanceof ApiError) || error.info.code !== STILL_ANALYSING) throw error;
      await pause(ASK_AGAIN_MS);
      given.throwIfAborted();
    }
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, ms); });

/** The sides as the server's parameters. */
export const queryOf = ({ base, candidate }: Sides): Record<string, string> => ({ ...parameters('base', base), ...parameters('candidate', candidate) });

const parameters = (name: SideName, { run, rank, span, steps }: Side): Record<string, string> => ({
  [name]: run ?? '', ...(rank && { [`${name}_rank`]: rank }), ...(span && { [`${name}_span`]: span }), ...(steps && { [`${name}_steps`]: steps }),
});

const MOST_REPORTS = 8;
const reports = signal<ReadonlyMap<string, ProfileReport>>(new Map());

/** The report whose steps a side can choose from: of its latest profile; null until it is there. */
export function useReport(side: Side): ProfileReport | null {
  const profile = profilesOf(side).findLast((each) => each.state !== 'error' && each.worker === profilesOf(side)[0]?.worker);
  const name = profile ? `${keyText({ run: side.run ?? '', worker: profile.worker, span: profile.span })} ${profile.version}` : '';
  const offline = gone.value;
  useEffect(() => {
    if (!profile || reports.peek().has(name)) return undefined;
    const turn = new AbortController();
    const { worker, span } = profile;
    void readReport(() => getReport({ run: side.run ?? '', worker, span }, turn.signal), profile, turn.signal).then((report) => {
      if (report) reports.value = new Map([...reports.peek()].slice(1 - MOST_REPORTS)).set(name, report);
    });
    return () => turn.abort();
  }, [name, offline]);
  return reports.value.get(name) ?? null;
}

/** Null where there will be none; the comparison itself says why. */
async function readReport(question: () => Promise<ReportAnswer>, { worker, span }: ProfileState, given: AbortSignal): Promise<ProfileReport | null> {
  try {
    for (;;) {
      const { states, report } = await reach(question());
      const found = report.profiles.find((each) => each.worker === worker && each.span === span);
      if (found || states.every(isOver)) return found ?? null;
      await pause(ASK_AGAIN_MS);
      given.throwIfAborted();
    }
  } catch (error) {
    faultInfo(error);
    return null;
  }
}
