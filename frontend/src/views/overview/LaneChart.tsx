/** One device's (or the host's) step as a bar of its parts. */

import type { Device, Lane, ProfileReport } from '../../api/types.gen';
import { groupsOf, isHost, totalOf } from '../../base/lanes';
import { nanoseconds, partShare } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { GroupLegend } from '../../components/GroupLegend';
import { Bar } from '../../components/StackedBar';
import { TableTwin } from '../../components/TableTwin';
import { per } from '../../state/profile';

interface Props { lane: Lane; report: ProfileReport; step: number | null }

export function LaneChart({ lane, report, step }: Props) {
  const groups = groupsOf(lane, step);
  if (groups.length === 0) return null;
  const worded = groups.map(({ slices, ...group }) => ({ ...group, ...words(group), slices: slices.map((slice) => ({ ...slice, ...words(slice) })) }));
  const bar = groups.flatMap(({ slices }) => slices).map((slice) => ({ ...slice, text: `${nanoseconds(slice.ns)}, ${partShare(slice.share)}` }));
  const rows = worded.flatMap(({ label, slices }) => slices.map((slice) => ({ ...slice, group: label })));
  const what = step === null ? averageText(per.value, report.steps.items.length) : report.steps.items[step]?.name ?? '';
  return (
    <TableTwin title={laneName(lane, report.devices)} note={`${what}: ${nanoseconds(totalOf(groups))}`}
      chart={(
        <>
          <Bar tall parts={bar} />
          <GroupLegend groups={worded} />
          {lane.communication_overlapped_ns > 0 && (
            <p class="beside">Communication hidden behind compute: {nanoseconds(lane.communication_overlapped_ns)} per {per.value} on average; it is inside the parts above.</p>
          )}
        </>
      )}
      table={() => (
        <DataTable label={`Parts of ${lane.lane}`} rows={rows}
          columns={[
            { label: 'Part', cell: (row) => row.label }, { label: 'Group', cell: (row) => row.group },
            { label: step === null ? `Time per ${per.value}` : 'Time', number: true, cell: (row) => row.text }, { label: 'Share', number: true, cell: (row) => row.share },
          ]} />
      )} />
  );
}

const averageText = (unit: 'step' | 'trace', steps: number): string => (unit === 'trace' ? 'Whole trace' : steps === 1 ? 'The one step' : 'Average step');

const words = ({ ns, share: part }: { ns: number; share: number }): { text: string; share: string } => ({ text: nanoseconds(ns), share: partShare(part) });

function laneName(lane: Lane, devices: readonly Device[]): string {
  if (isHost(lane)) return 'Host (CPU)';
  const device = devices.find((each) => lane.lane === `${each.kind}:${each.index}`);
  return device?.name ? `${lane.lane} · ${device.name}` : lane.lane;
}
