/** Which two recordings are compared. */

import { spanTime } from './selection';

/** One side: a run (null before one is chosen), one of its workers or ranks, a span, a range of steps; empty stands for all. */
export interface Side { run: string | null; rank: string; span: string; steps: string }
export interface Sides { base: Side; candidate: Side }

export const NO_SIDE: Side = { run: null, rank: '', span: '', steps: '' };

interface RunLike { run: string; profiles: readonly { span: string; state: string }[] }

/**
 * What is chosen; what is not is the run that is `looked` at, or the newest with another of its job, against the newest
 * other of its job, by their names. Where no two runs have like names, names say nothing; else a run of a job of its own
 * stands against itself, for the user to choose.
 */
export function chosenSides(chosen: Sides, runs: readonly RunLike[], looked: string): Sides {
  const newest = newestFirst(runs);
  const areNamed = newest.some((run, at) => newest.slice(at + 1).some((other) => likeness(run, other) > 0));
  const partnerOf = (run: string | null): string | undefined => {
    const others = newest.filter((each) => each !== run).toSorted((one, other) => likeness(run, other) - likeness(run, one));
    return others.find((each) => !areNamed || likeness(run, each) > 0);
  };
  const candidate = chosen.candidate.run ?? newest.find((run) => run === looked) ?? newest.find(partnerOf) ?? newest[0] ?? null;
  const base = chosen.base.run ?? partnerOf(candidate) ?? candidate;
  return { base: { ...chosen.base, run: base }, candidate: { ...chosen.candidate, run: candidate } };
}

/** How many words two names begin with in common, where that is half of the shorter: recordings of one job are mostly named alike. */
function likeness(one: string | null, other: string): number {
  const [words, others] = [(one ?? '').split(WORDS), other.split(WORDS)];
  const differs = words.findIndex((word, index) => word !== others[index]);
  const alike = differs < 0 ? words.length : differs;
  return 2 * alike >= Math.min(words.length, others.length) ? alike : 0;
}

const WORDS = /[^a-z0-9]+/i;

/** Runs that can be read, by the time their spans tell; those that tell none are older, later names newer. */
function newestFirst(runs: readonly RunLike[]): string[] {
  const readable = runs.filter(({ profiles }) => profiles.some(({ state }) => state !== 'error'));
  const timed = readable.map(({ run, profiles }) => ({ run, time: Math.max(...profiles.map(({ span }) => spanTime(span) ?? 0)) }));
  return timed.toReversed().toSorted((one, other) => other.time - one.time).map(({ run }) => run);
}

const sideText = ({ run, rank, span, steps }: Side): string => JSON.stringify([run, rank, span, steps]);
export const sidesText = ({ base, candidate }: Sides): string => `${sideText(base)} ${sideText(candidate)}`;
export const areSame = ({ base, candidate }: Sides): boolean => sideText(base) === sideText(candidate);
