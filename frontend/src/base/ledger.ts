/** The account of a step in words, rows and groups: every nanosecond belongs to exactly one entry. */

import type { Entry, Ledger, Limit, Owner } from '../api/types.gen';
import { spread, type Spread } from './statistics';
import type { Oddity } from './stepStrip';
import { nanoseconds, share } from './units';
import { STEP_BASIS } from './words';

export type Cause = Entry['cause'];
export type Kind = NonNullable<Entry['kind']>;
export type StepSource = Ledger['step_source'];
export type Recording = Ledger['recording'];
export type Proof = Entry['proof'];
export type KnownBy = NonNullable<Owner['known_by']>;
export type Bound = Limit['bound'];
export type LedgerGroup =
  | 'compute' | 'communication' | 'copies' | 'queued' | 'host' | 'launch' | 'data' | 'waiting' | 'runtime' | 'compilation'
  | 'interruption' | 'cpu' | 'unnamed' | 'other';

export interface EntryLike { id: string; cause: Cause; kind: Kind | null; ns_total: number; ns_by_step: readonly number[] }
export interface LedgerLike<E extends EntryLike = EntryLike> { step_ns: { mean: number; n: number }; entries: readonly E[] }

/** One entry in the selected step. */
export interface Row<E> { entry: E; ns: number; share: number }
/** The rows, longest first, add up to the whole. */
export interface Account<E> { whole: number; rows: readonly Row<E>[] }

/** The account of one step, or of the average one. */
export function accountOf<E extends EntryLike>({ entries, step_ns: { mean, n } }: LedgerLike<E>, step: number | null): Account<E> {
  const times = step === null ? evenly(entries.map((entry) => entry.ns_total), n, mean) : entries.map((entry) => entry.ns_by_step[step] ?? 0);
  const whole = sum(times);
  const rows = entries.map((entry, index) => ({ entry, ns: times[index] ?? 0, share: whole > 0 ? (times[index] ?? 0) / whole : 0 }));
  return { whole, rows: rows.filter(({ ns }) => ns > 0).toSorted((one, other) => other.ns - one.ns) };
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

/** Causes, short for a legend. Work is named by its kind. */
const CAUSES: Record<Cause, { group: LedgerGroup; label: string }> = {
  compute: { group: 'compute', label: 'Compute' },
  communication: { group: 'communication', label: 'Exposed communication' },
  copy: { group: 'copies', label: 'Copies' },
  between_kernels: { group: 'queued', label: 'Between kernels' },
  inside_graph: { group: 'queued', label: 'Inside a graph' },
  graph_start: { group: 'queued', label: 'Graph start' },
  stream_wait: { group: 'queued', label: 'Stream wait' },
  copy_setup: { group: 'queued', label: 'Copy set-up' },
  launch_latency: { group: 'queued', label: 'Launch latency' },
  host_work: { group: 'host', label: 'Host work' },
  launch_pace: { group: 'launch', label: 'Launch overhead' },
  data_loading: { group: 'data', label: 'Data loading' },
  synchronisation: { group: 'waiting', label: 'Synchronisation' },
  host_communication: { group: 'waiting', label: 'Host communication' },
  allocation: { group: 'runtime', label: 'Memory allocation' },
  first_launch: { group: 'runtime', label: 'First launch' },
  runtime_call: { group: 'runtime', label: 'Runtime call' },
  compilation: { group: 'compilation', label: 'Compilation' },
  graph_capture: { group: 'compilation', label: 'Graph capture' },
  profiler: { group: 'interruption', label: 'Profiler' },
  garbage_collection: { group: 'interruption', label: 'Garbage collection' },
  cpu: { group: 'cpu', label: 'CPU' },
  queued_unknown: { group: 'unnamed', label: 'Queued, cause unknown' },
  unrecorded_host: { group: 'unnamed', label: 'Host not recorded' },
  unrecorded_launch: { group: 'unnamed', label: 'Launch not recorded' },
  unrecorded_wait: { group: 'unnamed', label: 'Wait not recorded' },
};

export const KINDS: Record<Kind, string> = {
  matrix: 'Matrix products', attention: 'Attention', convolution: 'Convolutions', mixture_of_experts: 'Mixture of experts',
  normalisation: 'Normalisation', softmax: 'Softmax', embedding: 'Embeddings', pooling: 'Pooling', reduction: 'Reductions', sort: 'Sorting',
  indexing: 'Indexing', pointwise: 'Pointwise operators', random: 'Random numbers', fused: 'Compiled kernels', quantisation: 'Quantisation', optimizer: 'Optimizer',
  memory_copy: 'Copies in memory', layout: 'Layout conversions', to_device: 'Copies to the device', to_host: 'Copies to the host',
  on_device: 'Copies on the device', fill: 'Fills of memory', python: 'Python between operators', other: 'Other work', communication: 'Communication',
};

/** In the order of the bars. */
const GROUPS: Record<LedgerGroup, string> = {
  compute: 'Device compute', communication: 'Exposed communication', copies: 'Copies', queued: 'Queued work', host: 'Host work',
  launch: 'Launch overhead', data: 'Data loading', waiting: 'Host waits', runtime: 'Runtime calls', compilation: 'Compilation and capture',
  interruption: 'Profiler and garbage collection', cpu: 'CPU work', unnamed: 'Not explained', other: 'Everything else',
};

const isCause = (text: string): text is Cause => Object.hasOwn(CAUSES, text);
const isKind = (text: string): text is Kind => Object.hasOwn(KINDS, text);

/** A word of a closed list in the page's words; a word from a newer server stays the same. */
const worded = (words: Readonly<Record<string, string>>, text: string): string => (Object.hasOwn(words, text) ? words[text] ?? '' : text.replaceAll('_', ' '));

type Named = Pick<EntryLike, 'cause' | 'kind'>;

const OF_A_KIND = new Set<string>(['compute', 'copy', 'cpu']);

/** The part of a bar that an entry belongs to; `part` is one of a closed list. */
export function partOf({ cause, kind }: Named): { group: LedgerGroup; part: string; label: string } {
  if (!isCause(cause)) return { group: 'other', part: 'other', label: worded({}, String(cause)) };
  const { group, label } = CAUSES[cause];
  if (!OF_A_KIND.has(cause)) return { group, part: cause, label };
  return { group, part: kind && isKind(kind) ? kind : 'other', label: worded(KINDS, kind ?? 'other') };
}

export interface LedgerSlice { part: string; label: string; ns: number; share: number }
export interface LedgerGroupSlice { group: LedgerGroup; label: string; ns: number; share: number; slices: readonly LedgerSlice[] }

/** The rows by group and part: sums of entries, in the order of a bar. */
export function groupsOf<E extends EntryLike>({ whole, rows }: Account<E>): LedgerGroupSlice[] {
  const found = new Map<LedgerGroup, Map<string, LedgerSlice>>();
  for (const { entry, ns } of rows) {
    const { group, part, label } = partOf(entry);
    const slices = found.get(group) ?? new Map<string, LedgerSlice>();
    const before = slices.get(label)?.ns ?? 0;
    found.set(group, slices.set(label, { part, label, ns: before + ns, share: (before + ns) / whole }));
  }
  return GROUP_NAMES.flatMap((group) => {
    const slices = [...found.get(group)?.values() ?? []].toSorted((one, other) => other.ns - one.ns);
    const ns = sum(slices.map((slice) => slice.ns));
    return slices.length > 0 ? [{ group, label: GROUPS[group], ns, share: ns / whole, slices }] : [];
  });
}

const isGroup = (text: string): text is LedgerGroup => Object.hasOwn(GROUPS, text);
const GROUP_NAMES = Object.keys(GROUPS).filter(isGroup);

export const groupOf = (entry: Named): LedgerGroup => partOf(entry).group;

const SLIGHT = 0.02;

/** A group in a short bar, or one kind of the CPU's work, which is everything in a job without a device. */
export type ShortPart = LedgerGroupSlice & { part: string };

/** The parts that deserve a word beside other things, and all others merged. */
export function gathered(groups: readonly LedgerGroupSlice[]): readonly ShortPart[] {
  const parts = groups.flatMap((group): ShortPart[] =>
    (group.group === 'cpu' ? group.slices.map((slice) => ({ ...slice, group: group.group, slices: [slice] })) : [{ ...group, part: group.group }]));
  const slight = parts.filter(({ share: part }) => part < SLIGHT);
  if (slight.length < 2) return parts;
  const one: ShortPart = {
    group: 'other', part: 'other', label: `${slight.length} smaller parts`, ns: sum(slight.map(({ ns }) => ns)), share: sum(slight.map(({ share: part }) => part)),
    slices: slight.flatMap(({ slices }) => slices),
  };
  return [...parts.filter((part) => !slight.includes(part)), one];
}

/** True if an entry is in a part of a short bar. */
export const isIn = ({ group, part }: ShortPart, entry: Named): boolean => groupOf(entry) === group && (group !== 'cpu' || partOf(entry).part === part);

/** The part that dominates a group, if any: `Data loading`. */
export function mostly({ slices, ns }: { slices: readonly { label: string; ns: number }[]; ns: number }): string | null {
  if (slices.length < 2) return null;
  return slices.find((slice) => slice.ns > ns / 2)?.label ?? null;
}

const BUSY = new Set<LedgerGroup>(['compute', 'communication', 'copies']);

/** True if the device worked in the time of an entry. */
export const isBusy = (entry: Named): boolean => BUSY.has(groupOf(entry));

/** Time in which the device worked. */
export const busyNs = (groups: readonly LedgerGroupSlice[]): number => sum(groups.filter(({ group }) => BUSY.has(group)).map(({ ns }) => ns));

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

const SOURCES: Record<StepSource, string> = {
  ...STEP_BASIS, repeating_unit: 'taken from the sequence of kernels that repeats, which may be a layer',
};

export const sourceText = (source: StepSource): string => worded(SOURCES, source);

export const isWhole = ({ step_source: source }: { step_source: StepSource }): boolean => source === 'whole_trace';

/** The sum of the rows of an account without a selected step. */
export const averageText = (ledger: { step_source: StepSource; step_ns: { n: number } }): string =>
  (isWhole(ledger) ? 'the recording' : ledger.step_ns.n === 1 ? 'the one step' : 'the average step');

/** The spread of the steps' durations. */
export const stepSpread = ({ steps }: { steps: readonly { start_ns: number; end_ns: number }[] }): Spread | null =>
  spread({ items: steps.map(({ start_ns: start, end_ns: end }) => ({ duration_ns: end - start })) });

const DIFFERS = 0.02;

/** Host time of a step, if it differs from the step. */
export function hostPace({ host_step_ns: host, step_ns: { median } }: { host_step_ns: number | null; step_ns: { median: number } }): number | null {
  return host !== null && Math.abs(host - median) > DIFFERS * median ? host : null;
}

const RECORDINGS: Record<Recording, { what: string; why: string }> = {
  steady: { what: '', why: '' },
  'start-up': { what: 'This recording shows the start of the job.', why: 'Long first calls take much of it. Warm up, then record.' },
  compilation: { what: 'This recording shows compilation.', why: 'Compiling takes much of it. Warm up, then record.' },
  capture: { what: 'This recording shows the capture of a graph.', why: 'Most kernels were captured and did not run. Record replays of the graph.' },
  thinned: { what: 'This recording lacks many of its events.', why: 'What they did counts as something else. Record again with all events.' },
  'no-device': { what: 'This recording holds no device work.', why: 'It says what the host did, not what the device did. Record the device’s activity, too.' },
  'unknown-device': { what: 'This recording holds events of unknown categories.', why: 'If they are a device’s work, it is not known what the steps wait for.' },
  empty: { what: 'This recording holds nothing to account for.', why: 'Run steps of the job between the start and the stop of the profiler.' },
};

const HIDDEN_DEVICES: Partial<Record<Recording, string>> = {
  'no-device': 'A device whose work was not recorded', 'unknown-device': 'An unknown device',
};

/** The device of a recording that names none. */
export const withoutDevice = ({ recording }: { recording: Recording }): string => HIDDEN_DEVICES[recording] ?? 'CPU only';

/** The kind of recording, in the server's words if it has any, and what to do; null for steady steps. */
export function recordingText(recording: Recording, banner: string | null): { what: string; why: string } | null {
  if (recording === 'steady') return null;
  if (banner) return { what: banner, why: '' };
  return Object.hasOwn(RECORDINGS, recording) ? RECORDINGS[recording] : { what: `This recording is not of steady steps: ${worded({}, String(recording))}.`, why: '' };
}

const OF_START: ReadonlySet<Recording> = new Set<Recording>(['start-up', 'compilation', 'capture']);

/** True if a recording holds one-time work: savings in it do not apply to each step. */
export const isOfStart = ({ recording }: { recording: Recording }): boolean => OF_START.has(recording);

const PROOFS: Record<Proof, string> = {
  queued: 'its next work was launched before the device ran dry', issuing: 'the host was launching the next work',
  'in-call': 'the host was in a call that says so', blocked: 'the host waited for the device', silent: 'no thread launched anything for a while',
  none: '',
};
export const proofText = (proof: Proof): string => worded(PROOFS, proof);

const KNOWN_BY: Record<KnownBy, string> = {
  stack: 'the Python stack', operator: 'the operator', 'kernel-name': 'the kernel’s name', mark: 'the annotation', neighbours: 'the events before and after', none: '',
};
export const knownByText = (known: KnownBy): string => worded(KNOWN_BY, known);
