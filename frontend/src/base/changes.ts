/** Columns of the operators and kernels that changed. */

import type { KernelChange, OperatorChange } from '../api/types.gen';
import { differenceOf, wayOf } from './compare';
import { columnSigned, columnTime, count } from './units';
import { fromCaptureText } from './words';

export type Change = OperatorChange | KernelChange;

export interface ChangeColumn {
  label: string; number: boolean; px: number; width: string;
  text: (row: Change) => string;
  tone?: (row: Change) => string;
}

const NAMES: readonly ChangeColumn[] = [
  { label: 'Name', number: false, px: 160, width: 'minmax(160px, 1.2fr)', text: (row) => row.name },
  { label: 'Shapes', number: false, px: 120, width: 'minmax(120px, 1fr)', text: (row) => row.shapes || '–' },
  { label: 'Calls per step', number: true, px: 110, width: '110px', text: ({ base_calls: base, candidate_calls: candidate }) =>
    (base === candidate ? count(base) : `${count(base)} → ${count(candidate)}`) },
];

const KNOWN: ChangeColumn = { label: 'From capture', number: false, px: 132, width: '132px', text: (row) => fromCaptureText(row.known_by) };

/** Host times, and if any row has them, device times and how replays are known. */
export const changeColumns = (rows: readonly Change[]): readonly ChangeColumn[] => [
  ...NAMES,
  ...(rows.some((row) => 'base_device_ns' in row && row.base_device_ns !== null)
    ? [...times('Host ', (row) => row), ...times('Device ', onDevice)] : times('', (row) => row)),
  ...(rows.some((row) => row.known_by) ? [KNOWN] : []),
];

const onDevice = (row: Change) => ('base_device_ns' in row
  ? { base_ns: row.base_device_ns ?? 0, candidate_ns: row.candidate_device_ns ?? 0 } : { base_ns: 0, candidate_ns: 0 });

function times(of: string, pick: (row: Change) => { base_ns: number; candidate_ns: number }): ChangeColumn[] {
  const column = (label: string, text: (row: Change) => string, px: number): ChangeColumn => ({
    label: of ? `${of}${label.toLowerCase()}` : label, number: true, px, width: `${px}px`, text,
  });
  return [
    column('Baseline', (row) => columnTime(pick(row).base_ns), 104),
    column('Candidate', (row) => columnTime(pick(row).candidate_ns), 112),
    { ...column('Difference', (row) => differenceText(pick(row)), 124), tone: (row) => wayOf(differenceOf(pick(row))).tone },
  ];
}

const differenceText = (row: { base_ns: number; candidate_ns: number }): string => `${wayOf(differenceOf(row)).sign} ${columnSigned(differenceOf(row))}`;
