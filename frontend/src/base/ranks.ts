/** The ranks of a finding about a run, in words. */

const MOST_NAMED = 4;

/** `rank 3`, `ranks 1, 2`, `12 of 64 ranks`; `all ranks` if none is named or all are. */
export function ranksText(ranks: readonly number[], known: readonly number[]): string {
  if (ranks.length === 0 || ranks.length >= known.length) return 'all ranks';
  if (ranks.length === 1) return `rank ${ranks[0]}`;
  return ranks.length <= MOST_NAMED ? `ranks ${ranks.join(', ')}` : `${ranks.length} of ${known.length} ranks`;
}
