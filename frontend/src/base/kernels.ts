/** Columns of the table of kernels. */

import type { DeviceKernelRow, KernelFamilyRow } from '../api/types.gen';
import { columnFlops, flopsText } from './operators';
import { columnShare, columnTime, count } from './units';
import { FROM_CAPTURE_HINT, fromCaptureText } from './words';

/** A figure or a name of a row: the server can sort by any of them. */
export type KernelColumn = Exclude<keyof DeviceKernelRow, 'key'>;
export type Family = DeviceKernelRow['family'];

export interface KernelColumnSpec {
  id: KernelColumn;
  label: string;
  /** Meaning of the heading, for its tooltip. */
  hint: string;
  number: boolean;
  /** Least width. */
  px: number;
  /** As CSS for the grid. */
  width: string;
  text: (row: DeviceKernelRow) => string;
}

export const bytesPerSecond = (rate: number): string => flopsText(rate).replace('FLOP/s', 'B/s');
export const columnBytesPerSecond = (rate: number): string => columnFlops(rate).replace('FLOP/s', 'B/s');

const figure = (id: KernelColumn, label: string, hint: string, px: number, text: KernelColumnSpec['text']): KernelColumnSpec => ({ id, label, hint, number: true, px, width: `${px}px`, text });
const words = (id: KernelColumn, label: string, hint: string, px: number, parts: number, text: KernelColumnSpec['text']): KernelColumnSpec => ({ id, label, hint, number: false, px, width: `minmax(${px}px, ${parts}fr)`, text });

/** The columns; the families of the answer say what the rows' are called. */
export const kernelColumns = (families: readonly Pick<KernelFamilyRow, 'family' | 'label'>[]): readonly KernelColumnSpec[] => [
  words('name', 'Kernel', 'Name of the kernel, copy or fill', 220, 2, (row) => row.name),
  words('operator', 'Operator', 'The operator that launched it, for replayed kernels when the graph was captured', 140, 1, (row) => row.operator || '–'),
  words('family', 'Family', 'What it does, by the operator first and by its own name second', 150, 0.6, (row) => families.find(({ family }) => family === row.family)?.label ?? ''),
  figure('count', 'Count', 'How often it ran', 64, (row) => count(row.count)),
  figure('total_ns', 'Time', 'Durations, added up', 80, (row) => columnTime(row.total_ns)),
  figure('share', 'Share', 'Of all device work', 64, (row) => columnShare(row.share)),
  figure('mean_ns', 'Mean', 'Mean duration', 76, (row) => columnTime(row.mean_ns)),
  figure('flops_per_second', 'FLOP/s', 'Estimated floating-point operations per second of its operators, over all of their device work', 104, (row) => (row.flops_per_second === null ? '–' : columnFlops(row.flops_per_second))),
  figure('bytes_per_second', 'B/s', 'Least bytes that its operators must move, per second of their device work', 88, (row) => (row.bytes_per_second === null ? '–' : columnBytesPerSecond(row.bytes_per_second))),
  figure('roofline', 'Roofline', 'Least time that the device needs for the work, as a share of the time taken', 84, (row) => (row.roofline === null ? '–' : columnShare(row.roofline))),
  words('known_by', 'From capture', FROM_CAPTURE_HINT, 132, 0, (row) => fromCaptureText(row.known_by)),
];

const WORDS = new Set<KernelColumn>(kernelColumns([]).filter(({ number }) => !number).map(({ id }) => id));

/** Words are sorted from the first, figures from the largest. */
export const kernelDescendsFirst = (column: KernelColumn): boolean => !WORDS.has(column);
