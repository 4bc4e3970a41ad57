/** The comparison on the screen: its two sides, and the server's answer. */

import { computed } from '@preact/signals';
import { getComparison, getFlame, getReport } from '../api/client';
import type { CompareAnswer, CompareQuery, ErrorInfo, FindingChange, Flame, Place, ProfileReport, ProfileState } from '../api/types.gen';
import { areSame, chosenSides, sidesText, type Side, type Sides } from '../base/sides';
import { keyText, NO_KEY, type ProfileKey } from '../base/selection';
import { pause } from '../base/waiting';
import { reloads } from './answers';
import { polled, readyOr, resource, useResource, type Answered } from './resource';
import { go, route } from './route';
import { refreshRuns, runs } from './runs';

export type SideName = keyof Sides;

/** The sides: from the address, else the newest runs. Empty during the first search of the logdir. */
export const sides = computed<Sides | null>(() => {
  const answer = runs.value;
  if (!answer || answer.runs.length === 0) return null;
  const { compare, run } = route.value;
  if (compare.base.run !== null && compare.candidate.run !== null) return compare;
  return answer.scanning ? null : chosenSides(compare, answer.runs, run);
});

/** Writes both sides into the address, so that its link means the same tomorrow. */
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

/** Findings that only the baseline reports are there, all others in the candidate; those about several ranks, in any recording. */
function profileOf({ only, worker = '', span = '' }: FindingChange): ProfileKey {
  const side = route.peek().compare[only === 'base' ? 'base' : 'candidate'];
  return { run: side.run ?? '', worker: worker || side.rank, span: span || side.span };
}

/** The profiles of a side; for a rank given as a number, those that may be it. */
export function profilesOf({ run, rank, span }: Side): readonly ProfileState[] {
  const profiles = runs.value?.runs.find((each) => each.run === run)?.profiles ?? [];
  const named = profiles.filter((each) => each.worker === rank);
  return (named.length > 0 ? named : profiles).filter((each) => span === '' || each.span === span);
}

/** Changes with any of the recordings. */
const versionsText = ({ base, candidate }: Sides): string =>
  [base, candidate].flatMap((side) => profilesOf(side).map(({ worker, span, version }) => `${worker} ${span} ${version}`)).join('\n');

export interface Work { done: number; of: number; fraction: number; stage: string }

/** Progress of the analyses that both sides need. */
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

const comparisons = resource<{ versions: string; answer: CompareAnswer }>();
const watches = resource<null>();

const SETTLED_MS = 300; // a range that grows step by step is requested once
const ASK_AGAIN_MS = 1000;

/**
 * The comparison for a component; a known one stays while it is requested again, and one of older recordings until the
 * user asks.
 */
export function useComparison(now: Sides): Compared {
  const of = areSame(now) ? '' : sidesText(now);
  const known = comparisons.answers.value.get(of);
  const stale = known !== undefined && known.versions !== versionsText(now);
  const compared = useResource(comparisons, of, async (given) => {
    if (!comparisons.answers.peek().has(of)) await pause(SETTLED_MS, given);
    return { versions: versionsText(now), answer: await getComparison({ ...queryOf(now), limit: 0 }, given) };
  }, stale ? null : reloads.value);
  const working = of !== '' && compared.kind === 'loading';
  useResource(watches, working ? of : '', (given) => polled(() => refreshRuns().then(() => null), given, ASK_AGAIN_MS)); // they state the progress of the analyses
  if (of === '') return { kind: 'same' };
  if (compared.kind === 'ready') return { kind: 'ready', answer: compared.answer.answer, stale, again: () => comparisons.forget(of) };
  return compared.kind === 'failed' ? compared : { kind: 'working' };
}

/** The sides as the server's parameters. */
export const queryOf = ({ base, candidate }: Sides): CompareQuery => ({ base: base.run ?? '', candidate: candidate.run ?? '', ...parameters('base', base), ...parameters('candidate', candidate) });

const parameters = (name: SideName, { rank, span, steps }: Side): Record<string, string> => ({
  ...(rank && { [`${name}_rank`]: rank }), ...(span && { [`${name}_span`]: span }), ...(steps && { [`${name}_steps`]: steps }),
});

const reports = resource<ProfileReport | null>({ keep: 8, once: true });

/** The report whose steps a side can select from: of its latest profile; null until it exists. */
export function useReport({ run, ...side }: Side): ProfileReport | null {
  const profiles = profilesOf({ run, ...side });
  const profile = profiles.findLast((each) => each.state !== 'error' && each.worker === profiles[0]?.worker);
  const key = profile ? { run: run ?? '', worker: profile.worker, span: profile.span } : null;
  const name = key ? `${keyText(key)} ${profile?.version}` : '';
  return readyOr(useResource(reports, name, (given) => polled(() => reportOf(key ?? NO_KEY, given), given, ASK_AGAIN_MS).then(({ report }) => report)), null);
}

/** Null during the analysis; without a report if there will be none, as the comparison itself explains. */
async function reportOf(key: ProfileKey, given: AbortSignal): Promise<{ report: ProfileReport | null } | null> {
  const { states, report } = await getReport({ ...key }, given);
  const found = report.profiles.find((each) => each.worker === key.worker && each.span === key.span);
  return found || states.every(isOver) ? { report: found ?? null } : null;
}

export interface Flames { base: Flame; candidate: Flame; named: string }

const flames = resource<Flames>({ keep: 4, once: true });

/** The merged calls of both sides: for a side with several ranks those of the first, which `named` names. */
export function useFlames({ base, candidate }: Sides): Answered<Flames> {
  const found = [base, candidate].map((side) => {
    const profiles = profilesOf(side);
    return { run: side.run ?? '', several: new Set(profiles.map(({ worker }) => worker)).size > 1, profile: profiles.findLast((each) => each.state !== 'error' && each.worker === profiles[0]?.worker) };
  });
  const keys = found.map(({ run, profile }) => ({ run, worker: profile?.worker ?? '', span: profile?.span ?? '' }));
  const name = keys.map((key, side) => `${keyText(key)} ${found[side]?.profile?.version ?? 0}`).join('\n');
  const named = found.flatMap(({ run, several, profile }) => (several && profile ? `Of “${run}” it is the recording of ${profile.worker}.` : [])).join(' ');
  return useResource(flames, name, async (given) => {
    const [one, other] = await Promise.all(keys.map((key) => getFlame(key, given)));
    if (!one || !other) throw new TypeError('a side without an answer');
    return { base: one, candidate: other, named };
  });
}
