/** A profile's time as parts that do not overlap, so that a stacked bar tells the truth. */

export interface BreakdownLike {
  wall_ns: number;
  data_loading_ns: number;
  host_to_device_ns: number | null;
  device_to_host_ns: number | null;
  communication_ns: number | null;
  communication_exposed_ns: number | null;
  compute_ns: number | null;
  device_busy_ns: number | null;
}

export type Part = 'compute' | 'communication' | 'copies' | 'busy' | 'data' | 'idle' | 'rest';

export interface Segment { part: Part; label: string; ns: number; share: number }
export interface Figure { label: string; ns: number; share: number }

/** The device's time where a device was recorded, else the host's. Empty parts are left out. */
export function segments(breakdown: BreakdownLike): Segment[] {
  const { wall_ns: wall } = breakdown;
  if (wall <= 0) return [];
  return (breakdown.device_busy_ns === null ? hostParts(breakdown) : deviceParts(breakdown, breakdown.device_busy_ns))
    .filter(([, , ns]) => ns > 0)
    .map(([part, label, ns]) => ({ part, label, ns, share: ns / wall }));
}

type Row = [part: Part, label: string, ns: number];

function hostParts({ wall_ns: wall, data_loading_ns: data }: BreakdownLike): Row[] {
  return [['data', 'Data loading', data], ['rest', 'Everything else', wall - data]];
}

/** Busy time is compute, then communication that nothing hides, and what is left of it is copies. */
function deviceParts(breakdown: BreakdownLike, busy: number): Row[] {
  const idle: Row = ['idle', 'Device idle', breakdown.wall_ns - busy];
  if (breakdown.compute_ns === null) return [['busy', 'Device busy', busy], idle];
  const compute = Math.min(breakdown.compute_ns, busy);
  const exposed = Math.min(breakdown.communication_exposed_ns ?? 0, busy - compute);
  return [
    ['compute', 'Compute', compute],
    ['communication', 'Communication, not hidden', exposed],
    ['copies', 'Copies and fills', busy - compute - exposed],
    idle,
  ];
}

/** What runs beside the parts of the bar and may overlap with them and with each other. */
export function figures(breakdown: BreakdownLike): Figure[] {
  const { wall_ns: wall } = breakdown;
  if (wall <= 0) return [];
  const rows: [string, number | null][] = [
    ['data loading', breakdown.device_busy_ns === null ? null : breakdown.data_loading_ns],
    ['copies to device', breakdown.host_to_device_ns],
    ['copies to host', breakdown.device_to_host_ns],
    ['communication', breakdown.communication_ns],
  ];
  return rows.flatMap(([label, ns]) => (ns === null ? [] : [{ label, ns, share: ns / wall }]));
}
