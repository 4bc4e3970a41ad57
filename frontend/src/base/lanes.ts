/** Parts of a step in words and groups, for the bars, their legends and their tables. */

import type { Lane, LanePart } from '../api/types.gen';

export type PartName = LanePart['part'];
export type Group = 'compute' | 'communication' | 'copies' | 'idle' | 'model' | 'data' | 'python' | 'other';

export interface Slice { part: PartName; label: string; ns: number; share: number }
export interface GroupSlice { group: Group; label: string; ns: number; share: number; slices: readonly Slice[] }

const PARTS: Record<PartName, { group: Group; label: string }> = {
  matrix: { group: 'compute', label: 'Matrix products' },
  attention: { group: 'compute', label: 'Attention' },
  convolution: { group: 'compute', label: 'Convolutions' },
  normalisation: { group: 'compute', label: 'Normalisation' },
  reduction: { group: 'compute', label: 'Reductions' },
  elementwise: { group: 'compute', label: 'Pointwise operators' },
  optimizer: { group: 'compute', label: 'Optimizer' },
  other_compute: { group: 'compute', label: 'Other kernels' },
  communication_exposed: { group: 'communication', label: 'Exposed communication' },
  host_to_device: { group: 'copies', label: 'Copies to the device' },
  device_to_host: { group: 'copies', label: 'Copies to the host' },
  device_copy: { group: 'copies', label: 'Copies on the device' },
  idle_data_loading: { group: 'idle', label: 'Data loading' },
  idle_compilation: { group: 'idle', label: 'Compilation' },
  idle_garbage_collection: { group: 'idle', label: 'Garbage collection' },
  idle_communication_wait: { group: 'idle', label: 'Waiting for communication' },
  idle_synchronisation: { group: 'idle', label: 'Synchronisation' },
  idle_launch_bound: { group: 'idle', label: 'Launch overhead' },
  idle_unknown: { group: 'idle', label: 'Not explained' },
  data_loading: { group: 'data', label: 'Data loading' },
  communication: { group: 'communication', label: 'Communication' },
  backward: { group: 'model', label: 'Backward' },
  forward: { group: 'model', label: 'Forward' },
  python: { group: 'python', label: 'Python between operators' },
  other: { group: 'other', label: 'Everything else' },
};

export const GROUPS: Record<Group, string> = {
  compute: 'Compute', communication: 'Exposed communication', copies: 'Copies', idle: 'Device idle', model: 'Model and optimizer',
  data: 'Data loading', python: 'Python between operators', other: 'Everything else',
};

const HOST = 'host';
export const isHost = ({ lane }: Pick<Lane, 'lane'>): boolean => lane === HOST;

/** On a device, the optimizer is kernels; on the host, it is a phase of the step. */
const groupOf = (part: PartName, host: boolean): Group => (host && part === 'optimizer' ? 'model' : PARTS[part].group);

export const partLabel = (part: PartName): string => PARTS[part].label;

const isPart = (text: string): text is PartName => Object.hasOwn(PARTS, text);

/** A part given as text; an unknown one keeps its name. */
export const partName = (part: string): string => (isPart(part) ? partLabel(part) : part.replaceAll('_', ' '));

/** The parts of one step, or of the average one, by group; without empty parts. */
export function groupsOf(lane: Lane, step: number | null): GroupSlice[] {
  const host = isHost(lane);
  const times = lane.parts.map((each) => ({ part: each.part, ns: step === null ? each.mean_ns : each.steps_ns[step] ?? 0 }));
  const total = times.reduce((sum, { ns }) => sum + ns, 0);
  const groups = new Map<Group, Slice[]>();
  for (const { part, ns } of times) {
    if (ns <= 0) continue;
    const group = groupOf(part, host);
    groups.set(group, [...groups.get(group) ?? [], { part, label: partLabel(part), ns, share: ns / total }]);
  }
  return [...groups].map(([group, slices]) => {
    const ns = slices.reduce((sum, slice) => sum + slice.ns, 0);
    return { group, label: groupLabel(group, host), ns, share: ns / total, slices };
  });
}

const groupLabel = (group: Group, host: boolean): string => (host && group === 'communication' ? 'Communication' : GROUPS[group]);

export const totalOf = (groups: readonly { ns: number }[]): number => groups.reduce((sum, { ns }) => sum + ns, 0);

/** The groups of a lane in each step; none without a lane. */
export const groupsAt = (lane: Lane | null) => (index: number | null): GroupSlice[] => (lane ? groupsOf(lane, index) : []);

/** Several devices as one: the mean of each part. */
export function averaged(lanes: readonly Lane[]): Lane | null {
  const [first] = lanes;
  if (!first || lanes.length === 1) return first ?? null;
  const names = [...new Set(lanes.flatMap((lane) => lane.parts.map(({ part }) => part)))].toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / lanes.length;
  return {
    lane: first.lane,
    communication_overlapped_ns: mean(lanes.map((lane) => lane.communication_overlapped_ns)),
    parts: names.map((part) => {
      const of = lanes.flatMap((lane) => lane.parts.filter((each) => each.part === part));
      const steps = Math.max(0, ...of.map((each) => each.steps_ns.length));
      return {
        part, mean_ns: mean(of.map((each) => each.mean_ns)),
        steps_ns: Array.from({ length: steps }, (_, step) => mean(of.map((each) => each.steps_ns[step] ?? 0))),
      };
    }),
  };
}

const ORDER = Object.keys(PARTS);

/** The category of the checks for the cause of a part; parts that no check explains have none. */
const CHECKED_BY: Partial<Record<PartName, string>> = {
  communication_exposed: 'distributed', idle_communication_wait: 'distributed', communication: 'distributed',
  host_to_device: 'host_device', device_to_host: 'host_device',
  idle_data_loading: 'data_loading', data_loading: 'data_loading',
  idle_compilation: 'compile', idle_synchronisation: 'synchronization', idle_launch_bound: 'launch',
  optimizer: 'optimizer', python: 'python_loops', matrix: 'precision', attention: 'fusion', elementwise: 'fusion',
};

/** Filter for findings about some parts: about the largest of them; null if no check explains them. */
export function causeOf(slices: readonly Pick<Slice, 'part' | 'ns'>[]): string | null {
  const [largest] = slices.toSorted((one, other) => other.ns - one.ns);
  return (largest && CHECKED_BY[largest.part]) ?? null;
}

/** The part that dominates a group, if any: `Data loading`. */
export function mostly({ slices, ns }: { slices: readonly { label: string; ns: number }[]; ns: number }): string | null {
  if (slices.length < 2) return null;
  return slices.find((slice) => slice.ns > ns / 2)?.label ?? null;
}
