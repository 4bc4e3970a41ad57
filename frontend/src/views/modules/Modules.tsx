/** The tree of modules: time of each forward and backward pass, on the host and on the device. */

import { useMemo } from 'preact/hooks';
import type { ModuleRow } from '../../api/types.gen';
import { columnBytes, columnTime, count, plural } from '../../base/units';
import { FROM_CAPTURE_HINT, fromCaptureText } from '../../base/words';
import { ShareBar } from '../../components/ShareBar';
import { TreeGrid, type TreeColumn } from '../../components/TreeGrid';
import { NotRecorded, Waiting } from '../../components/Waiting';
import { modules, useAnswer } from '../../state/answers';

export const Modules = () => (
  <main class="table-page" aria-labelledby="page-title">
    <Waiting of={useAnswer(modules)}>
      {({ rows, missing }) => (
        <>
          <div class="table-head">
            <h1 id="page-title">Modules</h1>
            {rows.length > 0 && <span class="muted table-note">{plural(rows.length, 'module')}; times are totals over the recording; arrow keys open and close</span>}
          </div>
          {rows.length > 0 ? <Tree rows={rows} /> : <NotRecorded reason={missing ?? 'No module was called.'} />}
        </>
      )}
    </Waiting>
  </main>
);

const OPEN_DEPTH = 2;
const LEAST_PX = 200;
const time = (ns: number | null): string => (ns === null ? '–' : columnTime(ns));

function Tree({ rows }: { rows: readonly ModuleRow[] }) {
  const columns = useMemo(() => columnsOf(rows), [rows]);
  const least = columns.slice(1).reduce((sum, { width }) => sum + Number.parseInt(width, 10) + 12, LEAST_PX);
  return <TreeGrid label="Modules" rows={rows} columns={columns} least={least} openDepth={OPEN_DEPTH} />;
}

type Column = TreeColumn<ModuleRow>;
const onHost = (row: ModuleRow): number => row.forward_ns + row.backward_ns;
const onDevice = (row: ModuleRow): number => (row.device_forward_ns ?? 0) + (row.device_backward_ns ?? 0);

/** Only columns in which a module has a figure. Without a backward pass, only the forward pass. */
function columnsOf(rows: readonly ModuleRow[]): Column[] {
  const backward = rows.some((row) => row.backward_ns > 0 || (row.device_backward_ns ?? 0) > 0);
  const device = rows.some((row) => row.device_forward_ns !== null || row.device_backward_ns !== null);
  const memory = rows.some((row) => row.allocated_bytes !== null);
  const replayed = rows.some((row) => row.known_by);
  const roots = rows.filter((row) => row.parent === null);
  const total = (of: (row: ModuleRow) => number): number => Math.max(1, roots.reduce((sum, row) => sum + of(row), 0));
  const [all, allOnDevice] = [total(onHost), total(onDevice)];
  const column = (label: string, hint: string, px: number, cell: Column['cell']): Column => ({ label, hint, width: `${px}px`, cell });
  return [
    { label: 'Module', hint: 'Name and class of the module', width: 'minmax(min(300px, 45vw), 1fr)', cell: (row) => <Name row={row} /> },
    column('Calls', 'Number of calls', 60, (row) => count(row.calls)),
    column('Host', 'CPU time, forward and backward, modules inside included', 140, (row) => <ShareBar share={onHost(row) / all} text={time(onHost(row))} />),
    ...(backward ? [column('Forward', 'CPU time of the forward pass, modules inside included', 84, (row) => time(row.forward_ns))] : []),
    column('Forward self', 'CPU time of the forward pass without modules inside', 96, (row) => time(row.forward_self_ns)),
    ...(backward ? [
      column('Backward', 'CPU time of the backward pass, modules inside included', 84, (row) => time(row.backward_ns)),
      column('Backward self', 'CPU time of the backward pass without modules inside', 104, (row) => time(row.backward_self_ns)),
    ] : []),
    ...(device ? [column('Device', 'Device time, forward and backward, modules inside included', 140, (row) => <ShareBar share={onDevice(row) / allOnDevice} text={time(onDevice(row))} />)] : []),
    ...(device && backward ? [
      column('Device forward', 'Device time of what the forward pass launched', 104, (row) => time(row.device_forward_ns)),
      column('Device backward', 'Device time of what the backward pass launched', 112, (row) => time(row.device_backward_ns)),
    ] : []),
    ...(memory ? [column('Allocated', 'Memory allocated in the forward pass, frees not subtracted', 92, (row) => (row.allocated_bytes === null ? '–' : columnBytes(row.allocated_bytes)))] : []),
    ...(replayed ? [column('From capture', FROM_CAPTURE_HINT, 132, (row) => fromCaptureText(row.known_by))] : []),
  ];
}

const Name = ({ row: { name, class_name: type, places, file, line } }: { row: ModuleRow }) => (
  <span class="module-name" title={`${name} (${type}) ${file}${line === null ? '' : `:${line}`}`}>
    {name} {!name.startsWith(type) && <span class="muted">{type}</span>}{places > 1 && <span class="muted"> · called in {places} places</span>}
  </span>
);
