/** Columns of the operators and kernels that changed. */

import { differenceOf, wayOf } from './compare';
import { count, nanoseconds, signed } from './units';

export interface ChangeLike {
  name: string; shapes: string; base_calls: number; candidate_calls: number; base_ns: number; candidate_ns: number;
  base_device_ns?: number | null; candidate_device_ns?: number | null;
}

export interface ChangeColumn {
  label: string; number: boolean; width: string;
  text: (row: ChangeLike) => string;
  tone?: (row: ChangeLike) => string;
}

const NAMES: readonly ChangeColumn[] = [
  { label: 'Name', number: false, width: 'minmax(160px, 1.2fr)', text: (row) => row.name },
  { label: 'Shapes', number: false, width: 'minmax(120px, 1fr)', text: (row) => row.shapes || '–' },
  { label: 'Calls per step', number: true, width: '110px', text: ({ base_calls: base, candidate_calls: candidate }) =>
    (base === candidate ? count(base) : `${count(base)} → ${count(candidate)}`) },
];

/** Host times, and device times where any of the rows has them. */
export const changeColumns = (rows: readonly ChangeLike[]): readonly ChangeColumn[] =>
  (rows.some(({ base_device_ns: base }) => typeof base === 'number')
    ? [...NAMES, ...times('Host ', (row) => row), ...times('Device ', onDevice)] : [...NAMES, ...times('', (row) => row)]);

const onDevice = ({ base_device_ns: base = null, candidate_device_ns: candidate = null }: ChangeLike) => ({ base_ns: base ?? 0, candidate_ns: candidate ?? 0 });

function times(of: string, pick: (row: ChangeLike) => { base_ns: number; candidate_ns: number }): ChangeColumn[] {
  const column = (label: string, text: (row: ChangeLike) => string, width: string): ChangeColumn => ({
    label: of ? `${of}${label.toLowerCase()}` : label, number: true, width, text,
  });
  return [
    column('Baseline', (row) => nanoseconds(pick(row).base_ns), '104px'),
    column('Candidate', (row) => nanoseconds(pick(row).candidate_ns), '112px'),
    { ...column('Difference', (row) => differenceText(pick(row)), '124px'), tone: (row) => wayOf(differenceOf(pick(row))).tone },
  ];
}

const differenceText = (row: { base_ns: number; candidate_ns: number }): string => `${wayOf(differenceOf(row)).sign} ${signed(differenceOf(row))}`;
