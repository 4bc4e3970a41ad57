/** Which two recordings are compared. */

import { spanTime } from './selection';

/** One side: a run (null before one is chosen), one of its workers or ranks, a span, a range of steps; empty stands for all. */
export interface Side { run: string | null; rank: string; span: string; steps: string }
export interface Sides { base: Side; candidate: Side }

export const NO_SIDE: Side = { run: null, rank: '', span: '', steps: '' };

interface RunLike { run: string; profiles: readonly { span: string; state: string }[] }

/** What is chosen; what is not is the newest run, or the one that is `looked` at, against the newest of the others. */
export function chosenSides(chosen: Sides, runs: readonly RunLike[], looked: string): Sides {
  const newest = newestFirst(runs);
  const candidate = chosen.candidate.run ?? newest.find((run) => run === looked) ?? newest[0] ?? null;
  const base = chosen.base.run ?? newest.find((run) => run !== candidate) ?? candidate;
  return { base: { ...chosen.base, run: base }, candidate: { ...chosen.candidate, run: candidate } };
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
