/** The origin of a figure: its inputs, its computation, and its bounds. */

import { count, nanoseconds, plural, share } from './units';
import { capital, SAVING_BASIS, times } from './words';

/** One line of an explanation: its label, and its text. */
export interface Line { name: string; text: string }

interface Saving { expected_ns: number; low_ns: number; high_ns: number; speedup: number | null; basis: readonly ('bound' | 'replayed' | 'measured')[] }

interface Steps { basis: string; count: number; median_ns: number | null }

const HOW = {
  replayed: 'All steps are computed again from the timeline without the matched events. All other events start as early as what they wait for allows. The saving is how much earlier the steps end.',
  bound: 'The recording has no steps to recompute, so the saving is at most the time that the matched events take.',
  measured: 'A benchmark measured the statement with and without the pattern. The fix leaves that share of the matched events’ time.',
} satisfies Record<Saving['basis'][number], string>;

/** A finding's saving. `stepNs` is the step that it refers to. */
export function savingFormula(saving: Saving, costNs: number, stepNs: number | null, per: string): Line[] {
  const { expected_ns: expected, low_ns: low, high_ns: high } = saving;
  return [
    ...saving.basis.map((basis) => ({ name: capital(SAVING_BASIS[basis]), text: HOW[basis] })),
    { name: 'Bounds', text: `${boundsText(low, high)}; the matches cost ${nanoseconds(costNs)} per ${per}` },
    ...(expected > costNs ? [{ name: 'More than the cost', text: 'The cost is the time of the matches alone; what waits for them and the gaps between them also get shorter.' }] : []),
    ...(stepNs && saving.speedup !== null && expected > 0 ? [{
      name: 'Speed', text: `${nanoseconds(stepNs)} ÷ (${nanoseconds(stepNs)} − ${nanoseconds(expected)}) = ${times(saving.speedup)}`,
    }] : []),
  ];
}

/** No bound is `0 ns`. */
function boundsText(low: number, high: number): string {
  if (high <= 0) return 'nothing that the recording shows';
  return `${low > 0 ? `${nanoseconds(low)} at least, ` : ''}${nanoseconds(high)} at most`;
}

/** The cost of a finding: the time of its matches, per step; its share is of the recorded step. */
export function costFormula(costNs: number, part: number | null, matches: number, per: string): Line[] {
  return [
    { name: 'Cost', text: `The time in which the ${plural(matches, 'match', 'matches')} ran, counted once where they overlap, per ${per}` },
    ...(part ? [{ name: 'Share', text: `${nanoseconds(costNs)} ÷ ${nanoseconds(costNs / part)} (the recorded ${per}) = ${share(part)}` }] : []),
  ];
}

/** The saving of all fixes together, compared with the sum of the rows. */
export function jointFormula(joint: Saving, rows: readonly { saving: Saving | null }[], per: string): Line[] {
  const sum = rows.reduce((total, { saving }) => total + (saving?.expected_ns ?? 0), 0);
  const apart = sum - joint.expected_ns;
  return [
    { name: 'Together', text: `Without the matches of all ${plural(rows.length, 'finding')} at once: ${nanoseconds(joint.expected_ns)} per ${per}` },
    { name: 'Overlap', text: `The rows add up to ${nanoseconds(sum)}; ${overlap(apart)}` },
    { name: 'Bounds', text: boundsText(joint.low_ns, joint.high_ns) },
  ];
}

function overlap(apartNs: number): string {
  if (apartNs > 0) return `${nanoseconds(apartNs)} of that is time that several findings share, which counts once`;
  if (apartNs < 0) return `${nanoseconds(-apartNs)} more is saved only with all fixes, for example where both host and device fill the step`;
  return 'they share no time';
}

/** The step time, and the steps it comes from. */
export const stepFormula = (steps: Steps, odd: number): Line[] => [
  { name: 'Step time', text: `The median of ${plural(steps.count, 'step')}${odd > 0 ? `, ${count(odd)} of them warm-up or outliers` : ''}: half of them are shorter, half longer` },
];

export const busyFormula = (busyNs: number, wallNs: number, what: string): Line[] => [
  { name: 'Device busy', text: `${nanoseconds(busyNs)} in which a kernel or a copy ran ÷ ${nanoseconds(wallNs)} of ${what} = ${share(busyNs / wallNs)}` },
];
