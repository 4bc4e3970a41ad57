/** Steps by their numbers: `3-7`, or `5`. The server reads the same form. */

/** Positions in a list of steps, both ends included. */
export interface Range { first: number; last: number }

interface Step { name: string }

/** The number at the end of each step's name, else its position from 1. */
export const numbersOf = (steps: readonly Step[]): number[] =>
  steps.map(({ name }, index) => Number(/\d{1,15}$/.exec(name)?.[0] ?? index + 1));

/** The numbers of a range, null for another form. */
function parsed(text: string): Range | null {
  const [, from, to = from] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text) ?? [];
  const range = { first: Number(from), last: Number(to) };
  return from !== undefined && range.first <= range.last ? range : null;
}

/** The selected steps; null if there are none, or for another form. */
export function rangeIn(steps: readonly Step[], text: string): Range | null {
  const range = parsed(text);
  const within = numbersOf(steps).map((number) => range !== null && range.first <= number && number <= range.last);
  return within.includes(true) ? { first: within.indexOf(true), last: within.lastIndexOf(true) } : null;
}

/** The text for the steps from one position to another. */
export function rangeText(steps: readonly Step[], { first, last }: Range): string {
  const numbers = numbersOf(steps);
  return first === last ? `${numbers[first]}` : `${numbers[first]}-${numbers[last]}`;
}

/** The error of a typed range, in words; empty without one. */
export function rangeFault(text: string, steps: readonly Step[] | null): string {
  if (text === '') return '';
  if (!parsed(text)) return 'Write 3-7 for the steps 3 to 7, or 5 for one step.';
  if (!steps || rangeIn(steps, text)) return '';
  const numbers = numbersOf(steps);
  return numbers.length > 0 ? `There are the steps ${Math.min(...numbers)}-${Math.max(...numbers)}.` : 'There are no steps.';
}

/** The median step by duration, without odd ones if there are others. */
export function medianStep(steps: readonly { duration_ns: number; oddity?: string | null }[]): number {
  const indices = steps.map((_, index) => index);
  const usual = indices.filter((index) => !steps[index]?.oddity);
  const sorted = (usual.length > 0 ? usual : indices).toSorted((a, b) => (steps[a]?.duration_ns ?? 0) - (steps[b]?.duration_ns ?? 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
