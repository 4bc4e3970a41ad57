/** A whole as a bar of its parts, with the parts by group below it, or all of that as a table. */

import type { ComponentChildren } from 'preact';
import { columnShare, columnTime, nanoseconds, partShare } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { GroupLegend } from '../../components/GroupLegend';
import { Bar } from '../../components/StackedBar';
import { TableTwin } from '../../components/TableTwin';

interface Slice { colour: string; label: string; ns: number; share: number }
interface Props {
  title: string;
  note: string;
  table: string;
  /** Heading of the column of times: `Time per step`. */
  time: string;
  groups: readonly { group: string; label: string; ns: number; share: number; slices: readonly Slice[] }[];
  /** Content below the bar, instead of the legend of all parts. */
  below?: ComponentChildren;
  beside?: ComponentChildren;
}

export function PartsChart({ title, note, table, time, groups, below, beside }: Props) {
  const worded = groups.map(({ slices, ...group }) => ({ ...group, ...words(group), slices: slices.map((slice) => ({ ...slice, ...words(slice) })) }));
  const bar = groups.flatMap(({ slices }) => slices).map((slice) => ({ ...slice, text: `${nanoseconds(slice.ns)}, ${partShare(slice.share)}` }));
  const rows = worded.flatMap(({ label, slices }) => slices.map((slice) => ({ ...slice, group: label })));
  return (
    <TableTwin title={title} note={note} chart={<><Bar tall parts={bar} />{below ?? <GroupLegend groups={worded} />}{beside}</>}
      table={() => (
        <DataTable label={table} rows={rows}
          columns={[
            { label: 'Part', cell: (row) => row.label }, { label: 'Group', cell: (row) => row.group },
            { label: time, number: true, cell: (row) => row.text }, { label: 'Share', number: true, cell: (row) => row.share },
          ]} />
      )} />
  );
}

const words = ({ ns, share: part }: { ns: number; share: number }): { text: string; share: string } => ({ text: columnTime(ns), share: columnShare(part) });
