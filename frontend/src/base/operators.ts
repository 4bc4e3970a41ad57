/** Columns of the operator table, by grouping. */

import type { OperatorRow } from '../api/types.gen';
import { columnShare, columnTime, count, nanoseconds, plural } from './units';
import { fileName, placeText } from './places';
import type { Grouping } from './route';
import { FROM_CAPTURE_HINT, fromCaptureText } from './words';

/** A figure or a name of a row: the server can sort by any of them. */
export type OperatorColumn = Exclude<keyof OperatorRow, 'key' | 'kernels' | 'findings'>;

export interface ColumnSpec {
  id: OperatorColumn;
  label: string;
  /** Meaning of the heading, for its tooltip. */
  hint: string;
  number: boolean;
  /** Least width. */
  px: number;
  /** As CSS for the grid. */
  width: string;
  text: (row: OperatorRow) => string;
  /** The whole that its bar is a part of. */
  part?: (row: OperatorRow) => number;
}

export const GROUPINGS: readonly { id: Grouping; label: string }[] = [
  { id: 'name', label: 'Name' }, { id: 'shape', label: 'Name and shapes' }, { id: 'line', label: 'Source line' }, { id: 'module', label: 'Module' },
];

const time = (ns: number | null): string => (ns === null ? '–' : columnTime(ns));

const LEADS: Record<Grouping, ColumnSpec[]> = {
  name: [words('name', 'Operator', 'Name of the operator', 200, 1, (row) => row.name)],
  shape: [
    words('name', 'Operator', 'Name of the operator', 240, 1.4, (row) => row.name),
    words('shapes', 'Input shapes', 'Shapes and types of the inputs', 160, 1, (row) => row.shapes ?? ''),
  ],
  line: [
    words('file', 'Source line', 'Line of your code that the operators were called from', 180, 1, placeOf),
    words('name', 'Most time in', 'The operator with the most host self time', 160, 1, mostTimeIn),
  ],
  module: [
    words('module', 'Module', 'The module that the operators were called in', 180, 1, (row) => row.module ?? ''),
    words('name', 'Most time in', 'The operator with the most host self time', 160, 1, mostTimeIn),
  ],
};

const COMMON: readonly ColumnSpec[] = [
  number('calls', 'Calls', 'Number of calls', 64, (row) => count(row.calls)),
  number('host_self_ns', 'Host self', 'CPU time without calls inside', 80, (row) => time(row.host_self_ns)),
  number('host_total_ns', 'Host total', 'CPU time with calls inside', 84, (row) => time(row.host_total_ns)),
];
const DEVICE: readonly ColumnSpec[] = [
  number('device_self_ns', 'Device self', 'Time of the work that the calls themselves launched', 92, (row) => time(row.device_self_ns)),
  number('device_total_ns', 'Device total', 'Time of all launched work, calls inside included', 96, (row) => time(row.device_total_ns)),
  { ...number('tensor_cores', 'Tensor cores', 'Whether the kernels use tensor cores, by their names', 104, coresOf), number: false },
];
const KNOWN: ColumnSpec = { ...number('known_by', 'From capture', FROM_CAPTURE_HINT, 132, (row) => fromCaptureText(row.known_by)), number: false };
const RATE: readonly ColumnSpec[] = [
  number('flops_per_second', 'FLOP/s', 'Estimated floating-point operations per second', 100, (row) => (!row.flops_per_second ? '–' : columnFlops(row.flops_per_second))),
  number('roofline', 'Roofline', 'Least time that the device needs for the work, as a share of the time taken', 84, (row) => (row.roofline === null ? '–' : columnShare(row.roofline))),
];
const SPREAD: readonly ColumnSpec[] = [
  number('median_ns', 'Low–median–high', 'CPU time that a tenth, half and nine tenths of the calls stay below', 172, spreadText),
  number('slow_calls', 'Slow calls', 'Calls that took far longer than the median', 84, (row) => (typeof row.slow_calls === 'number' ? count(row.slow_calls) : '–')),
];

/** Columns without figures in a recording without a device are hidden. */
export const columnsOf = (by: Grouping, hasDevice: boolean): readonly ColumnSpec[] => [
  ...LEADS[by], ...COMMON, ...(hasDevice ? DEVICE : []), ...(hasDevice ? RATE : RATE.slice(0, 1)), ...(by === 'shape' ? SPREAD : []), ...(hasDevice ? [KNOWN] : []),
];

/** The time that bounds the job: the rows are sorted by it, and each has a bar for its share of it. */
export const boundingTime = (columns: readonly OperatorColumn[]): 'device_self_ns' | 'host_self_ns' =>
  (columns.includes('device_self_ns') ? 'device_self_ns' : 'host_self_ns');

interface Whole { host_ns?: number; device_ns?: number | null; empty?: readonly string[] }

const BAR_PX = 172;

/** The columns with a value in any row, with shares of the time that bounds the job. */
export function filledColumns(columns: readonly ColumnSpec[], { host_ns: host = 0, device_ns: device = null, empty = [] }: Whole): readonly ColumnSpec[] {
  const bounding = boundingTime(columns.map(({ id }) => id));
  const whole = (bounding === 'device_self_ns' ? device : host) ?? 0;
  const share = (row: OperatorRow): number => (whole > 0 ? (row[bounding] ?? 0) / whole : 0);
  return columns.filter(({ id }) => !empty.includes(id)).map((column) => (column.id === bounding && whole > 0
    ? { ...column, px: BAR_PX, width: `${BAR_PX}px`, part: share, text: (row) => `${column.text(row)} · ${columnShare(share(row))}` } : column));
}

const [GAP_PX, EDGES_PX] = [12, 32];

/** Width below which the columns no longer fit. */
export const leastWidth = (columns: readonly { px: number }[]): number => columns.reduce((sum, { px }) => sum + px + GAP_PX, EDGES_PX - GAP_PX);

const NARROW_LEAD_PX = 150;

/** The columns on a phone: what names a row, then the figure by which the rows are sorted, so that both are in sight. */
export function sortedSecond<C extends { id: string; px: number; width: string; number: boolean }>(columns: readonly C[], sorted: string): readonly C[] {
  const [lead, ...others] = columns;
  if (!lead) return columns;
  const by = others.filter(({ id }) => id === sorted);
  return [{ ...lead, px: NARROW_LEAD_PX, width: `minmax(${NARROW_LEAD_PX}px, 1fr)` }, ...by, ...others.filter(({ id }) => id !== sorted)];
}

const WORDS = new Set<OperatorColumn>([...Object.values(LEADS).flat(), KNOWN].map(({ id }) => id));

/** Words are sorted from the first, figures from the largest. */
export const descendsFirst = (column: OperatorColumn): boolean => !WORDS.has(column);

function words(id: OperatorColumn, label: string, hint: string, px: number, parts: number, text: ColumnSpec['text']): ColumnSpec {
  return { id, label, hint, px, width: `minmax(${px}px, ${parts}fr)`, text, number: false };
}

function number(id: OperatorColumn, label: string, hint: string, px: number, text: ColumnSpec['text']): ColumnSpec {
  return { id, label, hint, px, width: `${px}px`, text, number: true };
}

/** `train.py:42 train_step`. */
function placeOf({ file = '', line = null, function: name = '', generated }: OperatorRow): string {
  const place = line === null ? fileName(file) : placeText({ file, line, generated });
  return [file && place, name].filter(Boolean).join(' ');
}

function mostTimeIn(row: OperatorRow): string {
  return row.operators > 1 ? `${row.name} and ${plural(row.operators - 1, 'other')}` : row.name;
}

export const titleOf = (row: OperatorRow, by: Grouping): string => (LEADS[by][0]?.text(row) ?? '') || row.name;

function coresOf(row: OperatorRow): string {
  return row.tensor_cores === null && !row.device_total_ns ? '–' : coresText(row.tensor_cores);
}

export const coresText = (cores: boolean | null): string => (cores === null ? 'unknown' : cores ? 'yes' : 'no');

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'];

/** `81.3 GFLOP/s`, `90 GFLOP/s`. */
export const flopsText = (perSecond: number): string => rateText(perSecond, (rounded) => Number(rounded).toLocaleString('en-US'));

/** The same with trailing zeros, for a column: `90.0 GFLOP/s`. */
export const columnFlops = (perSecond: number): string => rateText(perSecond, (rounded) => (rounded.includes('e') || perSecond < 1000 ? Number(rounded).toLocaleString('en-US') : rounded));

/** `text` writes a number that has three significant digits. */
function rateText(perSecond: number, text: (rounded: string) => string): string {
  const power = Math.min(PREFIXES.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(perSecond, 1)) / 3)));
  return `${text((perSecond / 1000 ** power).toPrecision(3))} ${PREFIXES[power] ?? ''}FLOP/s`;
}

function spreadText({ low_ns: low, median_ns: median, high_ns: high }: OperatorRow): string {
  if (typeof low !== 'number' || typeof median !== 'number' || typeof high !== 'number') return '–';
  return `${nanoseconds(low)} – ${nanoseconds(median)} – ${nanoseconds(high)}`;
}
