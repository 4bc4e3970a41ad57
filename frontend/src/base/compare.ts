/** The result of a comparison, in words. */

import { listed } from './recording';
import { inUnit, plural, timeUnit } from './units';
import { replayedMark, type KnownFromCapture } from './words';

export type Tone = 'good' | 'bad' | 'even';
export type Verdict = 'faster' | 'slower' | 'no_clear_difference' | 'different_work';

interface SideLike { median_ns: number | null; steps: number }
interface Times { base_ns: number; candidate_ns: number }
interface Owner { name: string; base_ns: number | null; candidate_ns: number | null; known_by?: KnownFromCapture | null }
interface Entry extends Times { title: string; label: string; owners: readonly Owner[] }
interface Ledgers { base_step_ns: number; candidate_step_ns: number; entries: readonly Entry[] }
interface Ratio { value: number; low: number; high: number }
export interface Work { text: string; operations?: number | null; unit?: string; time_per_unit?: Ratio | null }
export interface Outcome { verdict: Verdict; step_ratio: Ratio | null; base: SideLike; candidate: SideLike; ledger?: Ledgers | null; work?: Work | null }

export const VERDICTS: Record<Verdict, { sign: string; tone: Tone }> = {
  faster: { sign: '▼', tone: 'good' },
  slower: { sign: '▲', tone: 'bad' },
  no_clear_difference: { sign: '≈', tone: 'even' },
  different_work: { sign: '≠', tone: 'even' },
};

/** `Candidate is 1.53× faster (1.48–1.58): 33.9 → 22.1 ms per step`. */
export function verdictText({ verdict, step_ratio: ratio, base, candidate }: Outcome): string {
  if (!ratio || base.median_ns === null || candidate.median_ns === null) return 'Step times cannot be compared: one side has no steps';
  const change = `${fromTo(base.median_ns, candidate.median_ns)} per step`;
  switch (verdict) {
    case 'faster': return `Candidate is ${factor(1 / ratio.value)}× faster (${factor(1 / ratio.high)}–${factor(1 / ratio.low)}): ${change}`;
    case 'slower': return `Candidate is ${factor(ratio.value)}× slower (${factor(ratio.low)}–${factor(ratio.high)}): ${change}`;
    case 'no_clear_difference': return `No clear difference: ${change}`;
    case 'different_work': return `Different work per step: ${change}`;
    default: return verdict satisfies never;
  }
}

/** How the work per step changed, and the time per unit of it; empty if it did not. */
export function workText({ work }: Pick<Outcome, 'work'>): string {
  if (!work) return '';
  const operations = typeof work.operations === 'number' ? `; operations ×${factor(work.operations)}` : '';
  const per = work.time_per_unit;
  return `The work per step changed: ${work.text}${operations}.${per ? ` Time per ${work.unit}: ×${factor(per.value)} (${factor(per.low)}–${factor(per.high)}).` : ''}`;
}

const VAGUE = 25;

/** True if an interval says nothing; a note then says what to record. The server has the same limit. */
const isVague = ({ low, high }: Ratio): boolean => high > VAGUE * low;

/** The basis of the verdict. */
export function groundsText({ verdict, step_ratio: ratio, base, candidate }: Outcome): string {
  if (!ratio) return '';
  if (isVague(ratio)) return '';
  const medians = base.steps === 1 && candidate.steps === 1 ? 'One step on each side' : `Medians of ${base.steps} and ${candidate.steps} steps`;
  return verdict === 'no_clear_difference' || verdict === 'different_work'
    ? `${medians}; the candidate takes ${factor(ratio.low)} to ${factor(ratio.high)} times as long${verdict === 'different_work' ? '' : ', so it may be faster or slower'}.`
    : `${medians}; the interval holds the true factor 19 times in 20.`;
}

const TELLING = 0.2; // a part below this share of the whole change explains nothing

/** The parts that changed most in the direction of the verdict: `Data loading 13.3 → 1.44 ms`. */
export function reasonText(outcome: Outcome): string {
  const { verdict, base, candidate } = outcome;
  if (verdict === 'no_clear_difference' || verdict === 'different_work' || base.median_ns === null || candidate.median_ns === null) return '';
  const way = verdict === 'faster' ? -1 : 1;
  const whole = Math.abs(candidate.median_ns - base.median_ns);
  const telling = (wholeOf(outcome)?.lines ?? []).filter((line) => way * differenceOf(line) > TELLING * whole)
    .toSorted((one, other) => way * (differenceOf(other) - differenceOf(one))).slice(0, 2);
  const parts = telling.map((line) => `${line.name} ${fromTo(line.base_ns, line.candidate_ns)}`);
  return parts.length > 0 ? `Most of it: ${listed(parts)}.` : '';
}

/** One line of a step's time; `title` is its full name, `owner` its owner. */
export interface ChangeLine extends Times { name: string; title: string; owner: string }
/** The lines of a table and their sum, the mean step. */
export interface Whole { sum: Times; lines: readonly ChangeLine[] }

/** The entries of both ledgers; null if a ledger does not have the chosen steps, which a note then says. */
export function wholeOf({ ledger }: Pick<Outcome, 'ledger'>): Whole | null {
  if (!ledger) return null;
  const sum = { base_ns: ledger.base_step_ns, candidate_ns: ledger.candidate_step_ns };
  return { sum, lines: ledger.entries.map((entry) => ({ ...entry, name: entry.label, owner: ownerText(entry.owners) })) };
}

/** The owner that changed most, among those that both ledgers name. */
function ownerText(owners: readonly Owner[]): string {
  const found = owners.find(({ base_ns: base, candidate_ns: candidate }) => base !== null && candidate !== null);
  return found ? `${found.name}${replayedMark(found.known_by)} ${fromTo(found.base_ns ?? 0, found.candidate_ns ?? 0)}` : '';
}

const sumOf = (lines: readonly Times[]): Times => lines.reduce((sum, line) => (
  { base_ns: sum.base_ns + line.base_ns, candidate_ns: sum.candidate_ns + line.candidate_ns }), { base_ns: 0, candidate_ns: 0 });

const SMALL = 0.01; // of the longer step

/** The lines to draw: lines that are small on both sides are merged. */
export function drawn({ lines, sum }: Whole): ChangeLine[] {
  const least = SMALL * Math.max(sum.base_ns, sum.candidate_ns);
  const small = lines.filter((line) => Math.max(line.base_ns, line.candidate_ns) < least);
  if (small.length < 2) return [...lines];
  const name = plural(small.length, 'smaller entry', 'smaller entries');
  return [...lines.filter((line) => !small.includes(line)), { ...sumOf(small), name, title: small.map((line) => line.name).join(', '), owner: '' }];
}

const factor = (value: number): string => (value < 10 ? value.toFixed(2) : value.toPrecision(3));

/** `33.9 → 22.1 ms`: one unit, so that both can be compared by eye. */
export function fromTo(base: number, candidate: number): string {
  const unit = timeUnit(Math.max(base, candidate));
  return `${inUnit(base, unit)} → ${inUnit(candidate, unit)} ${unit.name}`;
}

interface Changed { base_ns: number | null; candidate_ns: number | null }

export const differenceOf = ({ base_ns: base, candidate_ns: candidate }: Changed): number => (candidate ?? 0) - (base ?? 0);

/** Less time is better, and says so without colour. Up to `slight` it is neither good nor bad. */
export function wayOf(ns: number, slight = 0): { sign: string; word: string; tone: Tone } {
  const tone = Math.abs(ns) <= slight ? 'even' : ns < 0 ? 'good' : 'bad';
  return ns < 0 ? { sign: '▼', word: 'less', tone } : ns > 0 ? { sign: '▲', word: 'more', tone } : { sign: '=', word: 'the same', tone };
}

/** `−37 %`, relative to the baseline. */
export function changeShare({ base_ns: base, candidate_ns: candidate }: Changed): string {
  if (!base) return candidate ? 'new' : '–';
  if (!candidate) return 'gone';
  const percent = Math.round(100 * (candidate / base - 1));
  return `${percent > 0 ? '+' : percent < 0 ? '−' : ''}${Math.abs(percent)} %`;
}

export type FindingState = 'new' | 'worse' | 'gone' | 'better' | 'same' | 'below_limit' | 'covered' | 'not_checked';

/** States that need action come first. */
export const FINDING_STATES: readonly { state: FindingState; sign: string; word: string; meaning: string; tone: Tone }[] = [
  { state: 'new', sign: '+', word: 'New', meaning: 'only in the candidate', tone: 'bad' },
  { state: 'worse', sign: '↑', word: 'Worse', meaning: 'at a higher cost than before', tone: 'bad' },
  { state: 'gone', sign: '✓', word: 'Gone', meaning: 'only in the baseline', tone: 'good' },
  { state: 'better', sign: '↓', word: 'Better', meaning: 'at a lower cost than before', tone: 'good' },
  { state: 'same', sign: '=', word: 'Same', meaning: 'at about the same cost', tone: 'even' },
  { state: 'below_limit', sign: '·', word: 'Below the limit', meaning: 'on both sides, on one below a limit of the check', tone: 'even' },
  { state: 'covered', sign: '·', word: 'Covered', meaning: 'on both sides, on one covered by another finding', tone: 'even' },
  { state: 'not_checked', sign: '?', word: 'Not checked', meaning: 'on one side; the other’s recording does not show whether it is there', tone: 'even' },
];

const KEPT: ReadonlySet<FindingState> = new Set(['gone', 'better', 'below_limit']);

/**
 * True if a bar of predicted and realised savings applies to a finding: its prediction is about a change that happened.
 */
export const isKept = <F extends { state: FindingState; predicted_ns: number | null; realised_ns: number | null }>(
  finding: F,
): finding is F & { predicted_ns: number; realised_ns: number } =>
  KEPT.has(finding.state) && finding.predicted_ns !== null && finding.realised_ns !== null;
