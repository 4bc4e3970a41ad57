/** Data that a profile can hold, and how to record it (code in backticks). */

export type Recording = 'stacks' | 'shapes' | 'memory' | 'device' | 'steps';

export const RECORDINGS: readonly { what: Recording; label: string; how: string }[] = [
  { what: 'steps', label: 'steps of the profiler', how: 'with `schedule=…` and `profiler.step()` after each step' },
  { what: 'stacks', label: 'stacks', how: 'with `with_stack=True`' },
  { what: 'shapes', label: 'shapes', how: 'with `record_shapes=True`' },
  { what: 'memory', label: 'memory', how: 'with `profile_memory=True`' },
  { what: 'device', label: 'device', how: 'on a GPU with `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`' },
];

export interface Missing { labels: string[]; how: string[]; rules: number }

/**
 * Missing data that would let more rules run: needed by unchecked rules, and absent in the profile. A server calls no
 * `profiler.step()`, so nothing is advised for its steps.
 */
export function missing(recorded: readonly string[], unchecked: readonly { needs: readonly string[] }[], serves = false): Missing | null {
  const lacking = RECORDINGS.filter(({ what }) =>
    !recorded.includes(what) && unchecked.some((rule) => rule.needs.includes(what)));
  if (lacking.length === 0) return null;
  return {
    labels: lacking.map(({ label }) => label),
    how: lacking.filter(({ what }) => what !== 'steps' || !serves).map(({ how }) => how),
    rules: unchecked.filter((rule) => lacking.some(({ what }) => rule.needs.includes(what))).length,
  };
}

/** `stacks`, `stacks and shapes`, `stacks, shapes and memory`. */
export function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}
