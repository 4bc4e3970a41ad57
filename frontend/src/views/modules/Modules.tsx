/** The tree of modules: time of each forward and backward pass, on the host and on the device. */

import { useMemo } from 'preact/hooks';
import type { ModuleRow } from '../../api/types.gen';
import { columnBytes, columnTime, count, plural } from '../../base/units';
import { FROM_CAPTURE_HINT, fromCaptureText } from '../../base/words';
import { ShareBar } from '../../components/ShareBar';
import { TreeGrid, type TreeColumn } from '../../components/TreeGrid';
import { NotRecorded, Waiting } from '../../components/Waiting';
import { modules, useAnswer } from '../../state/answers';
import { ledger, per } from '../../state/profile';

export const Modules = () => (
  <main class="table-page" aria-labelledby="page-title">
    <Waiting of={useAnswer(modules)}>
      {({ rows, missing }) => (
        <>
          <div class="table-head">
            <h1 id="page-title">Modules</h1>
            {rows.length > 0 && <span class="muted table-note">{plural(rows.length, 'module')}; calls, host, device and memory are totals over the recording{withoutUpdates(rows) && '; which module an update is of was not recorded'}; arrow keys open and close</span>}
          </div>
          {rows.length > 0 ? <Tree rows={rows} /> : <NotRecorded reason={missing ?? 'No module was called.'} />}
        </>
      )}
    </Waiting>
  </main>
);

/** True for training whose optimizer's time is of no module: updates run outside them, for all parameters at once. */
const withoutUpdates = (rows: readonly ModuleRow[]): boolean => rows.some((row) => row.step_backward_ns) && !rows.some((row) => row.step_optimizer_ns);

const OPEN_DEPTH = 2;
const LEAST_PX = 200;
const time = (ns: number | null): string => (ns === null ? '–' : columnTime(ns));

function Tree({ rows }: { rows: readonly ModuleRow[] }) {
  const [unit, steps] = [per.value, ledger.value?.steps.length ?? 1];
  const columns = useMemo(() => columnsOf(rows, unit, Math.max(1, steps)), [rows, unit, steps]);
  const least = columns.slice(1).reduce((sum, { width }) => sum + Number.parseInt(width, 10) + 12, LEAST_PX);
  return <TreeGrid label="Modules" rows={rows} columns={columns} least={least} openDepth={OPEN_DEPTH} />;
}

type Column = TreeColumn<ModuleRow>;
const onHost = (row: ModuleRow): number => row.forward_ns + row.backward_ns;
const onDevice = (row: ModuleRow): number => (row.device_forward_ns ?? 0) + (row.device_backward_ns ?? 0);

/**
 * First the modules' parts of an average step, which are the ledger's, then totals over the recording. Only columns in which a
 * module has a figure. Without a backward pass, only the forward pass.
 */
function columnsOf(rows: readonly ModuleRow[], unit: string, steps: number): Column[] {
  const backward = rows.some((row) => row.backward_ns > 0 || (row.device_backward_ns ?? 0) > 0);
  const device = rows.some((row) => row.device_forward_ns !== null || row.device_backward_ns !== null);
  const memory = rows.some((row) => row.allocated_bytes !== null);
  const replayed = rows.some((row) => row.known_by);
  const roots = rows.filter((row) => row.parent === null);
  const total = (of: (row: ModuleRow) => number): number => Math.max(1, roots.reduce((sum, row) => sum + of(row), 0));
  const [all, allOnDevice, allOfStep] = [total(onHost), total(onDevice), total(({ step_ns: ns }) => ns ?? 0)];
  const perStep = (ns: number | null | undefined): string => (ns ? columnTime(ns / steps) : '');
  const inSteps = rows.some((row) => row.step_ns);
  const column = (label: string, hint: string, px: number, cell: Column['cell']): Column => ({ label, hint, width: `${px}px`, cell });
  return [
    { label: 'Module', hint: 'Name and class of the module', width: 'minmax(min(300px, 45vw), 1fr)', cell: (row) => <Name row={row} /> },
    ...(inSteps ? [
      column(`Per ${unit}`, `Part of an average ${unit}, modules inside included: device work, pauses of the device, or work of the host without a device`, 140,
        (row) => <ShareBar share={(row.step_ns ?? 0) / allOfStep} text={perStep(row.step_ns)} />),
      column('Forward', `Operators of the forward pass, part of an average ${unit}`, 84, (row) => perStep(row.step_forward_ns)),
      ...(rows.some((row) => row.step_backward_ns) ? [column('Backward', `Backward pass of the module's operators, part of an average ${unit}`, 84, (row) => perStep(row.step_backward_ns))] : []),
      ...(rows.some((row) => row.step_optimizer_ns) ? [column('Optimizer', `Updates inside the module, part of an average ${unit}`, 84, (row) => perStep(row.step_optimizer_ns))] : []),
    ] : []),
    column('Calls', 'Number of calls', 60, (row) => count(row.calls)),
    column('Host', 'CPU time, forward and backward, modules inside included', 140, (row) => <ShareBar share={onHost(row) / all} text={time(onHost(row))} />),
    ...(backward ? [column('Host forward', 'CPU time of the forward pass, modules inside included', 96, (row) => time(row.forward_ns))] : []),
    column('Forward self', 'CPU time of the forward pass without modules inside', 96, (row) => time(row.forward_self_ns)),
    ...(backward ? [
      column('Host backward', 'CPU time of the backward pass, modules inside included', 104, (row) => time(row.backward_ns)),
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
