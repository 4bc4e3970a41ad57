/** Values of the API for tests: complete by default, each test names its subject. */

import type { Ledger, LedgerEntry, LedgerOwner } from '../api/ledger';
import type {
  BenchmarkState, BenchmarksAnswer, CompareAnswer, Comparison, EventRow, Finding, FindingChange, Flame, LedgerGroup, LineColumns, LinesAnswer,
  Measurement, OperatorChange, OperatorRow, Outlier, Place, ProfileReport, ProfileState, RuleInfo, Saving, SourceAnswer, StackAnswer, StackFrame, TimelineEvent, TimelineLanes,
} from '../api/types.gen';

export const place = (changes: Partial<Place> = {}): Place => ({
  file: '/job/train.py', line: 42, end_line: 42, function: 'train_step', precision: 'exact', own_code: true,
  matches: 12, duration_ns: 4_000_000, ...changes,
});

export const saving = (expected: number, changes: Partial<Saving> = {}): Saving => ({
  expected_ns: expected, low_ns: expected / 2, high_ns: expected * 1.5, speedup: 1.1, basis: ['replayed'], ...changes,
});

export const finding = (id: string, changes: Partial<Finding> = {}): Finding => ({
  id, rule: 'first-rule', category: 'optimizer', severity: 'medium', confidence: 'high', message: `Finding ${id}`,
  fix: 'Do it once', matches: 12, matches_per_step: 4, places: [place()], cost_ns: 5_000_000, share: 0.05,
  saving: saving(4_000_000), details: [{ kind: 'note', text: 'Seen 4 times per step.' }], ...changes,
});

export const report = (changes: Partial<ProfileReport> = {}): ProfileReport => ({
  worker: 'host_1', span: '1', rank: 0, path: '/runs/job/host_1.1.pt.trace.json', events: 56451, duration_ns: 300_000_000,
  origin_ns: 0, recorded: ['stacks', 'shapes', 'steps'], devices: [], step_ns: 100_000_000,
  steps: {
    basis: 'profiler_step', count: 3, median_ns: 100_000_000,
    items: [90, 100, 110].map((ms, index) => ({ name: `ProfilerStep#${index + 4}`, start_ns: index, duration_ns: ms * 1e6 })),
  },
  quality: { partial: false, dropped_events: 0, parent_mismatch: null, notes: [] },
  outcomes: [], findings: [], ledger: account(), ...changes,
});

const TITLES: Record<string, string> = {
  'compute:matrix': 'Device: matrix products', graph_start: 'A queued graph has not started yet', garbage_collection: 'Python collects garbage', communication: 'Communication that nothing hides', host_work: 'Host work holds the device up',
};

/** Groups in the order of a bar. */
const GROUPS: readonly LedgerGroup[] = [
  { group: 'compute', label: 'Device compute', colour: 'blue' }, { group: 'communication', label: 'Exposed communication', colour: 'pink' },
  { group: 'copies', label: 'Copies', colour: 'orange' }, { group: 'queued', label: 'Queued work', colour: 'rows' },
  { group: 'host', label: 'Host work', colour: 'red' }, { group: 'launch', label: 'Launch overhead', colour: 'stripes' },
  { group: 'data', label: 'Data loading', colour: 'orange' }, { group: 'interruption', label: 'Profiler and garbage collection', colour: 'dots' },
  { group: 'cpu', label: 'CPU work', colour: 'blue' }, { group: 'unnamed', label: 'Not explained', colour: 'grey' },
];
/** Groups and labels of some causes, labels and colours of some kinds. */
const CAUSES: Partial<Record<LedgerEntry['cause'], readonly [LedgerGroup['group'], string]>> = {
  compute: ['compute', 'Compute'], communication: ['communication', 'Exposed communication'], copy: ['copies', 'Copies'],
  graph_start: ['queued', 'Graph start'], stream_wait: ['queued', 'Stream wait'], host_work: ['host', 'Host work'], launch_pace: ['launch', 'Launch overhead'],
  data_loading: ['data', 'Data loading'], profiler: ['interruption', 'Profiler'], garbage_collection: ['interruption', 'Garbage collection'],
  cpu: ['cpu', 'CPU'], unrecorded_host: ['unnamed', 'Host not recorded'],
};
const KINDS: Partial<Record<NonNullable<LedgerEntry['kind']>, readonly [string, LedgerEntry['colour']]>> = {
  matrix: ['Matrix products', 'blue'], pointwise: ['Pointwise operators', 'green-light'], to_device: ['Copies to the device', 'orange'],
  python: ['Python between operators', 'red'],
};

/** The groups of entries. */
export const groupsIn = (entries: readonly Pick<LedgerEntry, 'group'>[]): LedgerGroup[] => GROUPS.filter(({ group }) => entries.some((entry) => entry.group === group));

/** What the server says of a cause and a kind for the legend. */
export function inLegend(cause: LedgerEntry['cause'], kind: LedgerEntry['kind']): Pick<LedgerEntry, 'label' | 'group' | 'colour' | 'at_work'> {
  const [group, label] = CAUSES[cause] ?? ['unnamed', cause];
  const colour = GROUPS.find((each) => each.group === group)?.colour ?? 'grey';
  const [ofKind, colourOfKind] = (kind && KINDS[kind]) ?? [label, colour];
  return { label: ofKind, group, colour: colourOfKind, at_work: cause === 'cpu' ? 'cpu' : ['compute', 'communication', 'copies'].includes(group) ? 'device' : 'none' };
}

export const ledgerOwner = (changes: Partial<LedgerOwner> = {}): LedgerOwner => ({
  operator: null, kernel: null, library: null, own: null, thread: null, mark: null, known_by: 'none', neighbours: null, ...changes,
});

/** An entry by its time in each step, in ns. */
export const ledgerEntry = (cause: LedgerEntry['cause'], kind: LedgerEntry['kind'], steps: number[], changes: Partial<LedgerEntry> = {}): LedgerEntry => {
  const total = steps.reduce((sum, ns) => sum + ns, 0);
  return {
    id: kind ? `${cause}:${kind}` : cause, title: TITLES[kind ? `${cause}:${kind}` : cause] ?? cause, cause, kind, ...inLegend(cause, kind), ns_total: total, ns_per_step: Math.floor(total / steps.length), ns_by_step: steps, share: 0, count: 3,
    owner: ledgerOwner(), proof: 'none', proof_text: '', confidence: 'high', limit: null, communication: null, hidden_ns: 0, finding_id: null, advice: null,
    nothing_to_fix: null, evidence: [], ...changes,
  };
};

/** The account of successive steps from 0, as long as their entries together. */
export function ledger(entries: LedgerEntry[], changes: Partial<Ledger> = {}): Ledger {
  const lengths = (entries[0]?.ns_by_step ?? []).map((_, step) => entries.reduce((sum, entry) => sum + (entry.ns_by_step[step] ?? 0), 0));
  const ends = lengths.map((_, step) => lengths.slice(0, step + 1).reduce((sum, ns) => sum + ns, 0));
  const end = ends.at(-1) ?? 0;
  return {
    window: { start_ns: 0, end_ns: end }, step_source: 'profiler_step', step_source_text: 'marked by the profiler', recording: 'steady', banner: null, is_one_time: false, hidden_device: null, left_out: [],
    steps: lengths.map((ns, step) => ({ name: `ProfilerStep#${step + 4}`, start_ns: (ends[step] ?? 0) - ns, end_ns: ends[step] ?? 0, host_ns: ns, device_ns: ns })),
    step_ns: { median: lengths.toSorted((one, other) => one - other)[Math.floor(lengths.length / 2)] ?? 0, mean: Math.floor(end / lengths.length), n: lengths.length },
    host_step_ns: null, unnamed_ns: 0, entries, groups: groupsIn(entries), ...changes,
  };
}

/** The steps of `report()`: 90, 100 and 110 ms. */
export const account = (changes: Partial<Ledger> = {}): Ledger => ledger([
  ledgerEntry('compute', 'matrix', [35e6, 40e6, 45e6]), ledgerEntry('data_loading', null, [30e6, 30e6, 30e6]),
  ledgerEntry('compute', 'pointwise', [10e6, 10e6, 10e6]), ledgerEntry('copy', 'to_device', [5e6, 10e6, 15e6]),
  ledgerEntry('unrecorded_host', null, [10e6, 10e6, 10e6]),
], changes);

/** The account of a recording without anything to account for. */
export const noAccount = (): Ledger => ledger([], {
  recording: 'empty', banner: 'This recording contains no operators.', steps: [], step_ns: { median: 0, mean: 0, n: 1 },
});

export const state = (changes: Partial<ProfileState> = {}): ProfileState => ({
  worker: 'host_1', span: '1', span_index: 1, state: 'done', size: 35_000_000, fraction: 1, stage: '', problem: null,
  version: 1, recording: 1, reported: false, ...changes,
});

export const rule = (name: string, changes: Partial<RuleInfo> = {}): RuleInfo => ({
  rule: name, code: 'TT101', category: 'optimizer', title: `Title of ${name}`, needs: [], sections: [],
  thresholds: [], ...changes,
});

export const source = (changes: Partial<SourceAnswer> = {}): SourceAnswer => ({
  file: '/job/train.py', available: true, reason: null, changed: false, path: '/job/train.py',
  lines: Array.from({ length: 100 }, (_, index) => `line ${index + 1}`), ...changes,
});

export const stack = (...frames: Partial<StackFrame>[]): StackAnswer => ({
  more: 0,
  frames: frames.map((frame) => ({ file: '/job/train.py', line: 80, function: 'main', precision: 'aligned', ties: [], ...frame })),
});

export const lines = (changes: Partial<LineColumns> = {}): LinesAnswer => ({
  file: '/job/train.py',
  costs: { wall_ns: 300e6, line: [41, 42, 60], host_ns: [30e6, 120e6, 6e6], device_ns: [0, 90e6, 0], calls: [3, 36, 3], steps: 3, step_ns: 300e6, total_ns: [30e6, 120e6, 6e6],
    forward_ns: [0, 60e6, 0], backward_ns: [0, 60e6, 0], optimizer_ns: [0, 0, 6e6], loading_ns: [0, 0, 0], other_ns: [3e6, 0, 0], ties: [[], [], []], functions: [], functions_ns: [], shared: [1, 1, 1], known_by: [null, null, null], left_out: [], ...changes },
});

export const eventRow = (changes: Partial<EventRow> = {}): EventRow => ({
  id: 7, name: 'aten::item', start_ns: 1_000_000, duration_ns: 2000, step: 'ProfilerStep#1', lane: 'thread 1', shapes: '',
  place: 'train.py:42', ...changes,
});

export const timelineLanes = (changes: Partial<TimelineLanes> = {}): TimelineLanes => ({
  until_ns: 3_000_000, events: 300, steps: { names: ['ProfilerStep#1', 'ProfilerStep#2'], start_ns: [0, 1_500_000], duration_ns: [1_400_000, 1_400_000], left_out: 0 },
  busy: { host: [100, 20], device: [0, 50] },
  lanes: [
    { kind: 'steps', name: 'Steps', rows: 1, events: 2, deeper: 0 }, { kind: 'thread', name: 'Thread 1', rows: 5, events: 280, deeper: 0 },
    { kind: 'stream', name: 'Device 0, stream 7', rows: 1, events: 20, deeper: 0 },
  ],
  ...changes,
});

export const timelineEvent = (changes: Partial<TimelineEvent> = {}): TimelineEvent => ({
  id: 7, name: 'aten::item', category: 'operator', lane: 1, depth: 2, start_ns: 1_000_000, duration_ns: 2000, step: 'ProfilerStep#1', shapes: '64×32',
  inside: null, launched_by: null, launched: 0, launched_ns: 0, arrows: { from_lane: [], from_depth: [], from_ns: [], to_lane: [], to_depth: [], to_ns: [], left_out: 0 },
  ...changes,
});

export const operatorRow = (key: string, changes: Partial<OperatorRow> = {}): OperatorRow => ({
  key, name: key, kind: 'operator', operators: 1, calls: 12, host_self_ns: 2e6, host_total_ns: 3e6, device_self_ns: 5e6, device_total_ns: 6e6,
  device_busy_ns: 6e6, tensor_cores: true, flops: 1e9, flops_per_second: 1.5e12, bytes_per_second: 1e9, roofline: 0.5, kernels: [], findings: [],
  ...changes,
});

export const measurement = (changes: Partial<Measurement> = {}): Measurement => ({
  rule: 'first-rule', before: 'result = x * 1', after: 'result = x', setup: 'import torch',
  on: { kind: 'cuda', address: 'cuda:0', name: 'NVIDIA A100', torch: '2.13.0', runtime: 'CUDA 12.8', threads: 8 },
  before_ns: 12_600, after_ns: 7000, ratio: 0.5556, low: 0.5, high: 0.5882, blocks: 250,
  before_samples_ns: [12_400, 12_600, 13_000], after_samples_ns: [7000, 6800, 7200], verdict: 'faster', equal: true, trusted: true, doubts: [],
  measured_at: '2026-01-02T03:04:05+00:00', ...changes,
});

export const job = (changes: Partial<BenchmarkState> = {}): BenchmarkState => ({
  job: 1, run: 'job', worker: 'host_1', span: '1', finding: 'a', state: 'queued', stage: '', fraction: 0, ahead: 0, measurement: null, problem: null, ...changes,
});

/** Statements for the finding `a`, of a recording with a GPU; nothing is measured. */
export const benchmarksAnswer = (changes: Partial<BenchmarksAnswer> = {}): BenchmarksAnswer => ({
  refusal: null, command: "tb-tidy bench '/runs/my job/w.json'", kind: 'cuda', jobs: [], measurements: {},
  findings: { a: { before: 'result = x * 1', after: 'result = x', setup: 'import torch', of_events: true, devices: ['cpu'] } }, ...changes,
});

const ONLY: Partial<Record<FindingChange['state'], 'base' | 'candidate'>> = { gone: 'base', new: 'candidate' };
export const change = (id: string, changes: Partial<FindingChange> = {}): FindingChange => ({
  only: ONLY[changes.state ?? 'gone'] ?? null,
  id, rule: 'first-rule', state: 'gone', message: `Finding ${id}`, severity: 'medium', function: 'train_step',
  base_ns: 5_000_000, candidate_ns: null, predicted_ns: 4_000_000, realised_ns: 5_000_000, places: [place()], ...changes,
});

export const operatorChange = (name: string, changes: Partial<OperatorChange> = {}): OperatorChange => ({
  name, shapes: '64×64 · float32', base_calls: 4, candidate_calls: 0, base_ns: 3_000_000, candidate_ns: 0,
  base_device_ns: null, candidate_device_ns: null, ...changes,
});

/** The last step of `report()`, which waits for data. */
export const outlier = (changes: Partial<Outlier> = {}): Outlier => ({
  step: 2, name: 'ProfilerStep#6', duration_ns: 110e6, median_ns: 100e6,
  text: 'ProfilerStep#6 took 110 ms, 10 ms longer than the median step: waiting for data 8 ms more; `aten::mm` 2 ms more (3 calls instead of 2).',
  causes: [
    { kind: 'wait', name: 'data_loading', title: 'waiting for data', shapes: '', time_ns: 9e6, usual_ns: 1e6, calls: null, usual_calls: null },
    { kind: 'entry', name: 'The step waits for data', title: 'The step waits for data', shapes: '', time_ns: 9e6, usual_ns: 1e6, calls: null, usual_calls: null },
    { kind: 'operator', name: 'aten::mm', title: 'aten::mm', shapes: '64×64', time_ns: 6e6, usual_ns: 4e6, calls: 3, usual_calls: 2 },
  ],
  ...changes,
});

/** 100 ms against 80 ms per step. */
export const comparison = (changes: Partial<Comparison> = {}): Comparison => ({
  schema: 1, version: '0.1.0',
  base: { path: 'before', runs: ['before'], profiles: 1, steps: 10, median_ns: 100_000_000, chosen: '' },
  candidate: { path: 'after', runs: ['after'], profiles: 1, steps: 12, median_ns: 80_000_000, chosen: '' },
  verdict: 'faster', step_ratio: { value: 0.8, low: 0.75, high: 0.85 }, notes: [], predicted_ns: 4_000_000, realised_ns: 20_000_000,
  findings: [], operators: [], kernels: [], settings: [], ...changes,
});

export const compareAnswer = (changes: Partial<Comparison> = {}): CompareAnswer => ({
  comparison: comparison(changes), offset: 0, operators: changes.operators?.length ?? 0, kernels: changes.kernels?.length ?? 0,
});

/** All > step (train.py) > aten::mm > gemm_mm 60, idle 30; idle 10 at the root; two steps. */
export const flame = (changes: Partial<Flame> = {}): Flame => ({
  frames: [
    { kind: 'root', name: 'All' }, { kind: 'function', name: 'step', file: 'train.py', line: 12 }, { kind: 'operator', name: 'aten::mm' },
    { kind: 'kernel', name: 'gemm_mm', entry: 0 }, { kind: 'idle', name: 'The host is late', entry: 1 },
  ],
  entries: [
    { id: 'compute:matrix', title: 'Matrix products', cause: 'compute', group: 'compute', at_work: 'device', ns: 60 },
    { id: 'launch_pace', title: 'The host is late', cause: 'launch_pace', group: 'launch', at_work: 'none', ns: 40 },
  ],
  groups: groupsIn([{ group: 'compute' }, { group: 'launch' }]),
  parent: [-1, 0, 1, 2, 1, 0], frame: [0, 1, 2, 3, 4, 4], account_ns: [0, 0, 0, 60, 30, 10], host_ns: [0, 30, 20, 0, 0, 0], bytes: [0, 0, 0, 0, 0, 0],
  steps: 2, findings: {}, ...changes,
});
