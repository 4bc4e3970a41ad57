/** Which two recordings are compared. */

import { spanTime } from './selection';

/** One side: a run (null before one is chosen), one of its workers or ranks, a span, a range of steps; empty stands for all. */
export interface Side { run: string | null; rank: string; span: string; steps: string }
export interface Sides { base: Side; candidate: Side }

export const NO_SIDE: Side = { run: null, rank: '', span: '', steps: '' };

interface RunLike { run: string; profiles: readonly { span: string; state: string }[] }

/** What is chosen; what is not is the newest run, or the one that is `looked` at, against the newest other whose name is most like its own. */
export function chosenSides(chosen: Sides, runs: readonly RunLike[], looked: string): Sides {
  const newest = newestFirst(runs);
  const candidate = chosen.candidate.run ?? newest.find((run) => run === looked) ?? newest[0] ?? null;
  const others = newest.filter((run) => run !== candidate).toSorted((one, other) => likeness(candidate, other) - likeness(candidate, one));
  const base = chosen.base.run ?? others[0] ?? candidate;
  return { base: { ...chosen.base, run: base }, candidate: { ...chosen.candidate, run: candidate } };
}

/** How many words two names begin with in common: recordings of one job are mostly named alike. */
function likeness(one: string | null, other: string): number {
  const [words, others] = [one ?? '', other].map((name) => name.split(/[^a-z0-9]+/i));
  const differs = words?.findIndex((word, index) => word !== others?.[index]) ?? 0;
  return differs < 0 ? (words?.length ?? 0) : differs;
}

/** Runs that can be read, by the time their spans tell; those that tell none are older, later names newer. */
function newestFirst(runs: readonly RunLike[]): string[] {
  const readable = runs.filter(({ profiles }) => profiles.some(({ state }) => state !== 'error'));
  const timed = readable.map(({ run, profiles }) => ({ run, time: Math.max(...profiles.map(({ span }) => spanTime(span) ?? 0)) }));
  return timed.toReversed().toSorted((one, other) => other.time - one.time).map(({ run }) => run);
}

const sideText = ({ run, rank, span, steps }: Side): string => JSON.stringify([run, rank, span, steps]);
export const sidesText = ({ base, candidate }: Sides): string => `${sideText(base)} ${sideText(candidate)}`;
export const areSame = ({ base, candidate }: Sides): boolean => sideText(base) === sideText(candidate);
