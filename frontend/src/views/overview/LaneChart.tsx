/** One device's (or the host's) step as a bar of its parts. */

import type { Device, Lane, ProfileReport } from '../../api/types.gen';
import { groupsOf, isHost, totalOf } from '../../base/lanes';
import { nanoseconds } from '../../base/units';
import { per } from '../../state/profile';
import { PartsChart } from './PartsChart';

interface Props { lane: Lane; report: ProfileReport; step: number | null }

export function LaneChart({ lane, report, step }: Props) {
  const groups = groupsOf(lane, step);
  if (groups.length === 0) return null;
  const what = step === null ? averageText(per.value, report.steps.items.length) : report.steps.items[step]?.name ?? '';
  return (
    <PartsChart title={laneName(lane, report.devices)} note={`${what}: ${nanoseconds(totalOf(groups))}`} table={`Parts of ${lane.lane}`}
      time={step === null ? `Time per ${per.value}` : 'Time'} groups={groups}
      beside={lane.communication_overlapped_ns > 0 && (
        <p class="beside">Communication hidden behind compute: {nanoseconds(lane.communication_overlapped_ns)} per {per.value} on average; it is inside the parts above.</p>
      )} />
  );
}

const averageText = (unit: 'step' | 'trace', steps: number): string => (unit === 'trace' ? 'Whole trace' : steps === 1 ? 'The one step' : 'Average step');

function laneName(lane: Lane, devices: readonly Device[]): string {
  if (isHost(lane)) return 'Host (CPU)';
  const device = devices.find((each) => lane.lane === `${each.kind}:${each.index}`);
  return device?.name ? `${lane.lane} · ${device.name}` : lane.lane;
}
