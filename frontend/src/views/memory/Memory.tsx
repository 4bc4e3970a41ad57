/** Memory of each device over time, the holders of its peak, and the memory that steps keep. */

import { useState } from 'preact/hooks';
import type { DeviceMemoryRow, MemoryHolder, MemoryStep } from '../../api/types.gen';
import { memoryKindText, type MemoryKind } from '../../base/memoryKinds';
import { placeText } from '../../base/places';
import { bytes, columnBytes, columnShare, count, partShare, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Select } from '../../components/Select';
import { NotRecorded, Waiting } from '../../components/Waiting';
import { showSource } from '../../state/actions';
import { memory, useAnswer } from '../../state/answers';
import { addCss } from '../../state/host';
import css from '../../styles/memory.css?inline';
import { KindsChart } from './KindsChart';
import { MemoryChart } from './MemoryChart';

addCss(css);

export const Memory = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body">
      <h1 id="page-title">Memory</h1>
      <Waiting of={useAnswer(memory)}>
        {({ devices, missing, snapshot_problem: problem }) => (
          <>
            {problem && <NotRecorded reason={problem} />}
            {devices.length > 0 ? acceleratorsFirst(devices).map((device) => <DeviceMemory key={device.device} device={device} />)
              : <NotRecorded reason={missing ?? 'No memory events were recorded.'} />}
          </>
        )}
      </Waiting>
    </div>
  </main>
);

const acceleratorsFirst = (devices: readonly DeviceMemoryRow[]): DeviceMemoryRow[] =>
  devices.toSorted((a, b) => Number(a.device.startsWith('cpu')) - Number(b.device.startsWith('cpu')));

function DeviceMemory({ device }: { device: DeviceMemoryRow }) {
  const [kind, setKind] = useState<MemoryKind | ''>('');
  return (
    <>
      <MemoryChart device={device} />
      {(device.kinds ?? []).length > 0 && <KindsChart device={device} onKind={setKind} />}
      <Holders device={device} kind={kind} onKind={setKind} />
      {device.steps.length > 0 && (
        <section class="chart" aria-label={`Memory by step on ${device.device}`}>
          <div class="chart-head"><h3>By step on {device.device}</h3><span class="muted">kept: allocated in the step and not freed in it</span></div>
          <DataTable label={`Steps of ${device.device}`} columns={STEP_COLUMNS} rows={device.steps} />
        </section>
      )}
    </>
  );
}

const orNone = (value: number | null, text: (value: number) => string): string => (value === null ? '–' : text(value));

const STEP_COLUMNS: readonly TableColumn<MemoryStep>[] = [
  { label: 'Step', cell: (step) => step.step },
  { label: 'At its start', number: true, cell: (step) => columnBytes(step.start_bytes) },
  { label: 'Peak', number: true, cell: (step) => columnBytes(step.peak_bytes) },
  { label: 'At its end', number: true, cell: (step) => columnBytes(step.end_bytes) },
  { label: 'Kept', number: true, cell: (step) => orNone(step.kept_bytes, bytes) },
  { label: 'Kept allocations', number: true, cell: (step) => orNone(step.kept, count) },
];

/** The allocating operator; for a memory snapshot with the stack. */
const Asked = ({ holder: { operator, stack = [] } }: { holder: MemoryHolder }) => (stack.length > 1
  ? <details><summary>{operator}</summary><ol class="holder-stack">{stack.map((frame) => <li>{frame}</li>)}</ol></details> : <>{operator}</>);

interface HoldersProps { device: DeviceMemoryRow; kind: MemoryKind | ''; onKind: (kind: MemoryKind | '') => void }

function Holders({ device: { basis, device, holders, other_bytes: other, peak_bytes: peak }, kind, onKind }: HoldersProps) {
  const there = [...new Set(holders.flatMap((holder) => holder.kind ?? []))];
  const shown = holders.filter((holder) => kind === '' || holder.kind === kind);
  const columns: TableColumn<MemoryHolder>[] = [
    { label: 'Operator', cell: (holder) => <Asked holder={holder} /> },
    { label: 'Place', cell: ({ file, line, function: name }) => (file && line !== null
      ? <Button kind="quiet" onClick={() => showSource({ file, line })}>{placeText({ file, line })}{name && ` · ${name}`}</Button> : file || '–') },
    ...(there.length > 0 ? [{ label: 'Kind', cell: (holder: MemoryHolder) => (holder.kind ? memoryKindText(holder.kind) : '–') }] : []),
    { label: 'Allocations', number: true, cell: (holder) => count(holder.allocations) },
    { label: 'Holds', number: true, cell: (holder) => columnBytes(holder.bytes) },
    { label: 'Of the peak', number: true, cell: (holder) => (peak > 0 ? columnShare(holder.bytes / peak) : '–') },
  ];
  const before = other ? `${bytes(other)} of the peak (${partShare(other / peak)}) ${basis === 'snapshot' ? 'have no recorded stack' : 'were allocated before the recording'}` : '';
  return (
    <section class="chart" aria-label={`What holds the peak of ${device}`}>
      <div class="chart-head"><h3>What holds the peak of {device}</h3><span class="muted">{before}</span>
        <span class="chart-space" />
        {(there.length > 1 || kind !== '') && <Select<MemoryKind | ''> label="Kind" value={kind} options={[{ value: '', label: 'All kinds' }, ...[...new Set([...there, ...(kind ? [kind] : [])])].map((each) => ({ value: each, label: memoryKindText(each) }))]} onChange={onKind} />}
      </div>
      {holders.length > 0 ? (shown.length > 0 ? <DataTable label={`${plural(shown.length, 'holder')} of ${device}`} columns={columns} rows={shown} />
        : <p class="muted">{kind && memoryKindText(kind)}: no recorded allocation holds any at the peak.</p>)
        : <p class="muted">The events of this recording do not say which allocation is which, so nothing can be named.</p>}
    </section>
  );
}
