/** Columns of the operators and kernels that changed. */

import type { KernelChange, OperatorChange } from '../api/types.gen';
import { differenceOf, wayOf } from './compare';
import { count, nanoseconds, signed } from './units';

export type Change = OperatorChange | KernelChange;

export interface ChangeColumn {
  label: string; number: boolean; width: string;
  text: (row: Change) => string;
  tone?: (row: Change) => string;
}

const NAMES: readonly ChangeColumn[] = [
  { label: 'Name', number: false, width: 'minmax(160px, 1.2fr)', text: (row) => row.name },
  { label: 'Shapes', number: false, width: 'minmax(120px, 1fr)', text: (row) => row.shapes || '–' },
  { label: 'Calls per step', number: true, width: '110px', text: ({ base_calls: base, candidate_calls: candidate }) =>
    (base === candidate ? count(base) : `${count(base)} → ${count(candidate)}`) },
];

/** Host times, and device times where any of the rows has them. */
export const changeColumns = (rows: readonly Change[]): readonly ChangeColumn[] =>
  (rows.some((row) => 'base_device_ns' in row && row.base_device_ns !== null)
    ? [...NAMES, ...times('Host ', (row) => row), ...times('Device ', onDevice)] : [...NAMES, ...times('', (row) => row)]);

const onDevice = (row: Change) => ('base_device_ns' in row
  ? { base_ns: row.base_device_ns ?? 0, candidate_ns: row.candidate_device_ns ?? 0 } : { base_ns: 0, candidate_ns: 0 });

function times(of: string, pick: (row: Change) => { base_ns: number; candidate_ns: number }): ChangeColumn[] {
  const column = (label: string, text: (row: Change) => string, width: string): ChangeColumn => ({
    label: of ? `${of}${label.toLowerCase()}` : label, number: true, width, text,
  });
  return [
    column('Baseline', (row) => nanoseconds(pick(row).base_ns), '104px'),
    column('Candidate', (row) => nanoseconds(pick(row).candidate_ns), '112px'),
    { ...column('Difference', (row) => differenceText(pick(row)), '124px'), tone: (row) => wayOf(differenceOf(pick(row))).tone },
  ];
}

const differenceText = (row: { base_ns: number; candidate_ns: number }): string => `${wayOf(differenceOf(row)).sign} ${signed(differenceOf(row))}`;
