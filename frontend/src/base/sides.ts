/** The two recordings to compare. */

import { spanTime } from './selection';

/**
 * One side: a run (null before one is selected), one of its workers or ranks, a span, a range of steps; empty stands
 * for all.
 */
export interface Side { run: string | null; rank: string; span: string; steps: string }
export interface Sides { base: Side; candidate: Side }

export const NO_SIDE: Side = { run: null, rank: '', span: '', steps: '' };

interface RunLike { run: string; profiles: readonly { span: string; state: string }[] }

/**
 * The selected sides; open ones are the run `looked` at, or the newest with another one of its job, and the one before
 * it of its job, by their names. The older run is the baseline, so that the oldest run of a job is compared with the
 * next one. If no two runs have similar names, names say nothing; otherwise a run of a job of its own is compared with
 * itself, for the user to choose.
 */
export function chosenSides(chosen: Sides, runs: readonly RunLike[], looked: string): Sides {
  const newest = newestFirst(runs);
  const areNamed = newest.some((run, at) => newest.slice(at + 1).some((other) => likeness(run, other) > 0));
  const alike = (run: string, others: readonly string[]): string | undefined =>
    others.filter((each) => !areNamed || likeness(run, each) > 0).toSorted((one, other) => likeness(run, other) - likeness(run, one))[0];
  const before = (run: string): string | undefined => alike(run, newest.slice(newest.indexOf(run) + 1));
  const after = (run: string): string | undefined => alike(run, newest.slice(0, Math.max(newest.indexOf(run), 0)).toReversed());
  const of = (base: string | null, candidate: string | null): Sides => ({ base: { ...chosen.base, run: base }, candidate: { ...chosen.candidate, run: candidate } });
  const { base: { run: base }, candidate: { run: candidate } } = chosen;
  if (candidate !== null) return of(base ?? before(candidate) ?? after(candidate) ?? candidate, candidate);
  if (base !== null) return of(base, after(base) ?? before(base) ?? base);
  const shown = newest.find((run) => run === looked) ?? newest.find((run) => before(run) !== undefined) ?? newest[0] ?? null;
  if (shown === null) return of(null, null);
  const older = before(shown);
  return older === undefined ? of(shown, after(shown) ?? shown) : of(older, shown);
}

/**
 * Number of words that two names share at their start, if that is half of the shorter: recordings of one job mostly
 * have similar names.
 */
function likeness(one: string | null, other: string): number {
  const [words, others] = [(one ?? '').split(WORDS), other.split(WORDS)];
  const differs = words.findIndex((word, index) => word !== others[index]);
  const alike = differs < 0 ? words.length : differs;
  return 2 * alike >= Math.min(words.length, others.length) ? alike : 0;
}

const WORDS = /[^a-z0-9]+/i;

/** Readable runs, by the time in their spans; runs without one are older, later names newer. */
function newestFirst(runs: readonly RunLike[]): string[] {
  const readable = runs.filter(({ profiles }) => profiles.some(({ state }) => state !== 'error'));
  const timed = readable.map(({ run, profiles }) => ({ run, time: Math.max(...profiles.map(({ span }) => spanTime(span) ?? 0)) }));
  return timed.toReversed().toSorted((one, other) => other.time - one.time).map(({ run }) => run);
}

const sideText = ({ run, rank, span, steps }: Side): string => JSON.stringify([run, rank, span, steps]);
export const sidesText = ({ base, candidate }: Sides): string => `${sideText(base)} ${sideText(candidate)}`;
export const areSame = ({ base, candidate }: Sides): boolean => sideText(base) === sideText(candidate);
