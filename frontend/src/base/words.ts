/** The closed vocabularies of the report, in words for the user. */

import type { Finding, Place, Saving, Steps } from '../api/types.gen';
import { count, inUnit, nanoseconds, type TimeUnit } from './units';

type StepBasis = Steps['basis'];
type SavingBasis = Saving['basis'][number];
type Precision = Place['precision'];
export type KnownFromCapture = NonNullable<Finding['known_by']>;

/** The unit that a cost or a saving is counted per. */
export const perWhat = (basis: StepBasis): 'step' | 'trace' =>
  (basis === 'whole_trace' || basis === 'none' ? 'trace' : 'step');

/** The mean number of matches in words: `3 per step`, or `one in 5 steps`; empty if no step has one. Python's `matches_text` does the same. */
export const matchesText = (perStep: number): string =>
  (perStep >= 1 ? `${count(perStep)} per step` : perStep > 0 ? `one in ${count(1 / perStep)} steps` : '');

/** The basis of a saving, in short: `computed, then measured`. */
export const basisText = (basis: readonly SavingBasis[]): string => basis.map((each) => SHORT_BASIS[each]).join(', ');

export const SHORT_BASIS: Record<SavingBasis, string> = { bound: 'an upper limit', replayed: 'computed from the timeline', measured: 'measured' };

export const SAVING_BASIS: Record<SavingBasis, string> = {
  bound: 'upper limit from the events’ own time',
  replayed: 'computed from the step’s timeline without it',
  measured: 'measured by a benchmark',
};

/** How the operator of a replayed kernel is known. */
export const FROM_CAPTURE: Record<KnownFromCapture, string> = {
  exact: 'exact', unique: 'unique', renamed: 'by its place', donor: 'by an eager iteration',
};
export const FROM_CAPTURE_HINT = 'How operators were found for the kernels of a replayed CUDA graph; – where they were recorded';

/** Suffix of a name: ` (replayed: exact)`, empty if it was recorded itself. */
export const replayedMark = (known: KnownFromCapture | null | undefined): string => (known ? ` (replayed: ${FROM_CAPTURE[known]})` : '');

export const fromCaptureText = (known: KnownFromCapture | null | undefined): string => (known ? FROM_CAPTURE[known] : '–');

/** Certainty of a line as the one to change. `definition` is never the calling line itself, and says so. */
export function precisionText(precision: Precision, ties: readonly number[] = [], generated?: Place['generated']): string {
  if (generated) {
    return precision === 'definition'
      ? 'torch.compile compiled this function; the recording does not hold the lines of its kernels.'
      : 'Exact line that the compiled kernel computes, as captured.';
  }
  if (ties.length > 1) return `It is ${linesText({ line: 0, ties })}: the recorded calls fit them equally well.`;
  switch (precision) {
    case 'exact': return 'Exact line, as recorded.';
    case 'aligned': return 'Line found by matching the recorded calls with the source text.';
    case 'definition': return 'The call is inside this function. Marked is the line that the recording gives for the function, '
      + 'where it is defined or was when recording began; the calling line is not recorded.';
    default: return precision satisfies never;
  }
}

export const PRECISION_SHORT: Record<Precision, string> = {
  exact: 'exact line', aligned: 'matched line', definition: 'function definition',
};

interface Lines { line: number; end_line?: number; ties?: readonly number[] }

/** `line 12`, `lines 12–14` for one statement, `one of lines 12, 20` if the recording fits them equally well. */
export function linesText({ line, end_line: end = line, ties = [] }: Lines): string {
  const [first = line, last = line] = [ties[0], ties.at(-1)];
  if (ties.length > 1) return `one of lines ${last - first === ties.length - 1 && ties.length > 2 ? `${first}–${last}` : ties.join(', ')}`;
  return end > line ? `lines ${line}–${end}` : `line ${line}`;
}

/** `12–21`, or empty if both ends read the same. */
export function rangeText(saving: { low_ns: number; high_ns: number }, unit: TimeUnit): string {
  const [low, high] = [inUnit(saving.low_ns, unit), inUnit(saving.high_ns, unit)];
  return low === high ? '' : `${low}–${high}`;
}

/**
 * Range of a saving below its likely value: `12–21`; without a lower end, `at most 21` if that is more than is likely.
 */
export function limitsText(saving: { expected_ns: number; low_ns: number; high_ns: number }, unit: TimeUnit): string {
  if (saving.low_ns > 0) return rangeText(saving, unit);
  const most = inUnit(saving.high_ns, unit);
  return most === inUnit(saving.expected_ns, unit) ? '' : `at most ${most}`;
}

export const NO_SAVING = 'no saving expected';

/** Certainty of a saving, in words: `At least 12 ms, at most 21.3 ms`. A lower end of zero says when it applies. */
export function likelihoodText({ expected_ns: expected, low_ns: low, high_ns: high }: { expected_ns: number; low_ns: number; high_ns: number }): string {
  const most = high > expected ? `at most ${nanoseconds(high)}` : '';
  if (low <= 0) return `${most ? `${capital(most)}; n` : 'N'}othing if other work fills the time that becomes free`;
  const least = low < expected ? `at least ${nanoseconds(low)}` : '';
  return capital([least, most].filter(Boolean).join(', '));
}

/** The upper end of a saving: `at most 78.7 ms`. */
export const atMost = ({ high_ns: high }: { high_ns: number }): string => (high > 0 ? `at most ${nanoseconds(high)}` : '');

/** A saving of zero in a sentence: `no saving expected, at most 78.7 ms`. */
export const noSavingText = (saving: { high_ns: number }): string => [NO_SAVING, atMost(saving)].filter(Boolean).join(', ');

/** `1.18×`. */
export const times = (factor: number): string => `${factor.toFixed(2)}×`;

export const uncapital = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
