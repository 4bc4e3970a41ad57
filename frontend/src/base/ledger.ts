/** The account of a step in words, rows and groups: every nanosecond belongs to exactly one entry. */

import type { Entry, Ledger, LedgerGroup, Limit, Owner } from '../api/types.gen';
import { spread, type Spread } from './statistics';
import type { Oddity } from './stepStrip';
import { nanoseconds, share } from './units';
import { capital } from './words';

export type KnownBy = NonNullable<Owner['known_by']>;
export type Bound = Limit['bound'];

type Named = Pick<Entry, 'label' | 'group' | 'colour' | 'at_work'>;
export interface EntryLike extends Named { id: string; ns_total: number; ns_by_step: readonly number[] }
export interface LedgerLike<E extends EntryLike = EntryLike> { step_ns: { mean: number; n: number }; entries: readonly E[]; groups: readonly LedgerGroup[] }

/** One entry in the selected step. */
export interface Row<E> { entry: E; ns: number; share: number }
/** The rows, longest first, add up to the whole; the groups are in the order of a bar. */
export interface Account<E> { whole: number; rows: readonly Row<E>[]; groups: readonly LedgerGroup[] }

/** The account of one step, or of the average one. */
export function accountOf<E extends EntryLike>({ entries, groups, step_ns: { mean, n } }: LedgerLike<E>, step: number | null): Account<E> {
  const times = step === null ? evenly(entries.map((entry) => entry.ns_total), n, mean) : entries.map((entry) => entry.ns_by_step[step] ?? 0);
  const whole = sum(times);
  const rows = entries.map((entry, index) => ({ entry, ns: times[index] ?? 0, share: whole > 0 ? (times[index] ?? 0) / whole : 0 }));
  return { whole, groups, rows: rows.filter(({ ns }) => ns > 0).toSorted((one, other) => other.ns - one.ns) };
}

interface StepOf { name: string; start_ns: number; end_ns: number }
interface Item { name: string; start_ns: number; duration_ns: number; oddity?: Oddity | null }

/** The steps of the account, from the end of the one before; the report says which of them are odd. */
export function stepsOf(steps: readonly StepOf[], items: readonly Item[]): Item[] {
  const odd = new Map(items.map(({ name, oddity = null }) => [name, oddity]));
  return steps.map(({ name, start_ns: start, end_ns: end }) => ({ name, start_ns: start, duration_ns: end - start, oddity: odd.get(name) ?? null }));
}

/** Totals over `n` steps as whole ns of one that add up to `mean`: the remainder goes to the totals that lost most. */
function evenly(totals: readonly number[], n: number, mean: number): number[] {
  const cut = totals.map((total) => Math.floor(total / n));
  const left = mean - sum(cut);
  if (left < 0 || left > totals.length) return cut; // not the average of these steps: their own sum stays
  const most = new Set(totals.map((total, index) => ({ index, rest: total % n })).toSorted((one, other) => other.rest - one.rest).slice(0, left).map(({ index }) => index));
  return cut.map((ns, index) => ns + (most.has(index) ? 1 : 0));
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const SMALL = 0.01;

/** The rows to list, and those that are too small for a line each. */
export function folded<E>({ rows }: Account<E>): { listed: readonly Row<E>[]; small: readonly Row<E>[] } {
  return { listed: rows.filter((row) => row.share >= SMALL), small: rows.filter((row) => row.share < SMALL) };
}

export interface LedgerSlice { colour: Entry['colour']; label: string; ns: number; share: number }
export interface LedgerGroupSlice extends LedgerGroup { ns: number; share: number; slices: readonly LedgerSlice[] }

/** The rows by group and label: sums of entries, in the order of a bar. */
export function groupsOf<E extends EntryLike>({ whole, rows, groups }: Account<E>): LedgerGroupSlice[] {
  return groups.flatMap((group) => {
    const found = new Map<string, LedgerSlice>();
    for (const { entry: { label, colour, group: of }, ns } of rows) {
      const sumNs = (found.get(label)?.ns ?? 0) + ns;
      if (of === group.group) found.set(label, { label, colour, ns: sumNs, share: sumNs / whole });
    }
    const slices = [...found.values()].toSorted((one, other) => other.ns - one.ns);
    const ns = sum(slices.map((slice) => slice.ns));
    return slices.length > 0 ? [{ ...group, ns, share: ns / whole, slices }] : [];
  });
}

const SLIGHT = 0.02;

/** A part of a short bar: a group, one kind of the CPU's work, which is everything in a job without a device, or the rest. */
export interface ShortPart<E> extends LedgerSlice { slices: readonly LedgerSlice[]; entries: readonly E[] }

/** The parts that deserve a word beside other things, and all others merged. */
export function gathered<E extends EntryLike>(account: Account<E>): readonly ShortPart<E>[] {
  const parts = groupsOf(account).flatMap((group): ShortPart<E>[] => {
    const entries = account.rows.flatMap(({ entry }) => (entry.group === group.group ? entry : []));
    if (entries[0]?.at_work !== 'cpu') return [{ ...group, entries }];
    return group.slices.map((slice) => ({ ...slice, slices: [], entries: entries.filter(({ label }) => label === slice.label) }));
  });
  const slight = parts.filter(({ share: part }) => part < SLIGHT);
  if (slight.length < 2) return parts;
  const rest: ShortPart<E> = {
    colour: 'grey', label: `${slight.length} smaller parts`, ns: sum(slight.map(({ ns }) => ns)), share: sum(slight.map(({ share: part }) => part)), slices: [], entries: [],
  };
  return [...parts.filter((part) => !slight.includes(part)), rest];
}

/** The part that dominates a group, if any: `Data loading`. */
export function mostly({ slices, ns }: { slices: readonly { label: string; ns: number }[]; ns: number }): string | null {
  if (slices.length < 2) return null;
  return slices.find((slice) => slice.ns > ns / 2)?.label ?? null;
}

/** True if the device worked in the time of an entry. */
export const isBusy = ({ at_work: atWork }: Pick<Entry, 'at_work'>): boolean => atWork === 'device';

/** Time in which the device worked. */
export const busyNs = <E extends EntryLike>({ rows }: Account<E>): number => sum(rows.filter(({ entry }) => isBusy(entry)).map(({ ns }) => ns));

/** A word of a closed list in the page's words; a word from a newer server stays the same. */
const worded = (words: Readonly<Record<string, string>>, text: string): string => (Object.hasOwn(words, text) ? words[text] ?? '' : text.replaceAll('_', ' '));

const BOUNDS: Record<Bound, string> = { compute: 'compute', memory: 'memory', 'fp32-cores': 'float32 cores' };
interface LimitLike { share_reached: number | null; bound: Bound; known_share: number }

/** `28 % of the device’s limit (memory)`. */
export function limitText({ share_reached: reached, bound }: LimitLike): string {
  if (reached !== null) return `${share(reached)} of the device’s limit (${worded(BOUNDS, bound)})`;
  return bound === 'fp32-cores' ? 'Runs on float32 cores, not on matrix units' : `Limited by ${worded(BOUNDS, bound)}`;
}

const ALL = 0.995; // rounds to 100 %

/** The part of the entry with a known limit, if that is not all of it. */
export const knownText = ({ known_share: known }: LimitLike): string => (known < ALL ? `known for ${share(known)} of its time` : '');

interface CommunicationLike { transfer_ns: number | null; wait_ns: number; by: string }

/** Transfer and waiting in a row of `ns` that stands for `total` over all steps. */
export function communicationText({ transfer_ns: transfer, wait_ns: wait, by }: CommunicationLike, { ns, entry: { ns_total: total } }: Row<EntryLike>): string {
  const part = (of: number): string => nanoseconds(total > 0 ? Math.round((of / total) * ns) : 0);
  if (by !== 'ranks' || transfer === null) return wait > 0 ? `At least ${part(wait)} of it waits for other ranks` : '';
  return `${part(transfer)} transfer, ${part(wait)} waiting for other ranks`;
}

/** The reason if there is nothing to do; if no limit is known, it says why that is unknown. */
export function reasonText({ limit, nothing_to_fix: reason }: { limit?: LimitLike | null; nothing_to_fix?: string | null }): string {
  if (!reason) return '';
  return typeof limit?.share_reached === 'number' ? `Nothing to fix: ${reason}` : reason;
}

/** What bounds a step, in the words of its largest entry. */
export function boundText({ entry, share: part }: Row<{ title: string; limit?: LimitLike | null }>, per: string): string {
  const reached = entry.limit?.share_reached ?? null;
  return `${entry.title}: ${reached === null ? `${share(part)} of the ${per}` : `${share(reached)} of the device’s limit`}`;
}

export const isWhole = ({ step_source: source }: Pick<Ledger, 'step_source'>): boolean => source === 'whole_trace';

/** The sum of the rows of an account without a selected step. */
export const averageText = (ledger: Pick<Ledger, 'step_source'> & { step_ns: { n: number } }): string =>
  (isWhole(ledger) ? 'the recording' : ledger.step_ns.n === 1 ? 'the one step' : 'the average step');

/** The spread of the steps' durations. */
export const stepSpread = ({ steps }: { steps: readonly { start_ns: number; end_ns: number }[] }): Spread | null =>
  spread({ items: steps.map(({ start_ns: start, end_ns: end }) => ({ duration_ns: end - start })) });

const DIFFERS = 0.02;

/** Host time of a step, if it differs from the step. */
export function hostPace({ host_step_ns: host, step_ns: { median } }: { host_step_ns: number | null; step_ns: { median: number } }): number | null {
  return host !== null && Math.abs(host - median) > DIFFERS * median ? host : null;
}

/** The device of a recording that names none. */
export const withoutDevice = ({ hidden_device: hidden }: Pick<Ledger, 'hidden_device'>): string => capital(hidden ?? 'CPU only');

const KNOWN_BY: Record<KnownBy, string> = {
  stack: 'the Python stack', operator: 'the operator', 'kernel-name': 'the kernel’s name', mark: 'the annotation', neighbours: 'the events before and after', none: '',
};
export const knownByText = (known: KnownBy): string => worded(KNOWN_BY, known);
