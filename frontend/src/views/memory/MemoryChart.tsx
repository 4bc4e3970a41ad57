/** Allocated and reserved memory of one device over time. */

import type { DeviceMemoryRow } from '../../api/types.gen';
import { byteTicks, ticks } from '../../base/axis';
import { bytes, columnBytes, moment, nanoseconds, plural } from '../../base/units';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { StepChart } from '../../components/StepChart';
import { TableTwin } from '../../components/TableTwin';
import { report } from '../../state/profile';

const BASIS: Record<DeviceMemoryRow['basis'], string> = {
  total_allocated: 'as the allocator counts',
  running_sum: 'sum of the recorded events, so at least this much',
  snapshot: 'by the allocator’s own history, which ends when the snapshot was taken',
};

const HEADROOM = 1.12; // above the highest line there is room for the peak's label

export function MemoryChart({ device }: { device: DeviceMemoryRow }) {
  const { time_ns: times, allocated_bytes: allocated, reserved_bytes: reserved, peak_bytes: peak, peak_ns: peakAt } = device;
  const to = endOf(device);
  const most = Math.max(1, peak, device.peak_reserved_bytes ?? 0, ...ends(allocated), ...ends(reserved ?? []));
  const summary = `Peak ${bytes(peak)} at ${nanoseconds(peakAt)}`
    + `${device.peak_reserved_bytes === null ? '' : `, ${bytes(device.peak_reserved_bytes)} reserved at most`}; ${plural(device.allocations, 'allocation')}`
    + `${device.failures ? `, ${plural(device.failures, 'allocation')} failed for want of memory` : ''}`;
  return (
    <TableTwin title={device.device} note={`${summary}; ${BASIS[device.basis]}`}
      chart={(
        <StepChart label={`Memory of ${device.device} over time`} description={summary} times={times} from={0} to={to} most={most * HEADROOM}
          lines={[{ name: 'allocated', kind: 'area', values: allocated }, ...(reserved ? [{ name: 'reserved', kind: 'dashed' as const, values: reserved }] : [])]}
          marks={byteTicks(most).map((value) => ({ value, text: value === 0 ? '0' : bytes(value) }))}
          timeMarks={ticks(to, 6).map((time) => ({ time, text: time === 0 ? '0' : nanoseconds(time) }))}
          peak={{ time: peakAt, value: peak, text: bytes(peak) }}
          read={(index) => `${moment(times[index] ?? 0)}: ${bytes(allocated[index] ?? 0)} allocated${reserved ? `, ${bytes(reserved[index] ?? 0)} reserved` : ''}`} />
      )}
      table={() => <DataTable label={`Memory of ${device.device} over time`} columns={columns(device)} rows={times} />} />
  );
}

/** End of a device's charts: the end of the recording, or of the allocator's history. */
export const endOf = ({ basis, time_ns: times }: DeviceMemoryRow): number =>
  Math.max(basis === 'snapshot' ? 0 : report.value?.duration_ns ?? 0, times.at(-1) ?? 0, 1);

/** Highest value of a column of any length. */
const ends = (values: readonly number[]): number[] => [values.reduce((most, value) => Math.max(most, value), 0)];

const columns = ({ allocated_bytes: allocated, reserved_bytes: reserved }: DeviceMemoryRow): TableColumn<number>[] => [
  { label: 'From', number: true, cell: (time) => moment(time) },
  { label: 'Allocated', number: true, cell: (_, index) => columnBytes(allocated[index] ?? 0) },
  ...(reserved ? [{ label: 'Reserved', number: true, cell: (_: number, index: number) => columnBytes(reserved[index] ?? 0) }] : []),
];
