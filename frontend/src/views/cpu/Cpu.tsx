/** The CPU's work: threads, calls that took far longer than the median, Python between operators. */

import { useState } from 'preact/hooks';
import type { CpuFigures, FrameRow, SlowCallRow } from '../../api/types.gen';
import { placeText } from '../../base/places';
import { columnTime, count, moment, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Waiting } from '../../components/Waiting';
import { showSource } from '../../state/actions';
import { cpu, useAnswer } from '../../state/answers';
import { report } from '../../state/profile';

export const Cpu = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body">
      <h1 id="page-title">CPU</h1>
      <Waiting of={useAnswer(cpu)}>
        {({ cpu: figures }) => (figures.threads === 0 && figures.slow_calls.length === 0 && figures.frames === null
          ? <p>No thread of the host ran operators in this recording.</p> : <Figures figures={figures} />)}
      </Waiting>
    </div>
  </main>
);

const Figures = ({ figures }: { figures: CpuFigures }) => (
  <>
    <p class="lead">
      <b>{plural(figures.threads, 'thread')}</b> ran operators{figures.threads > 1 && <>, at most <b>{count(figures.most_threads)}</b> at the same time, <b>{count(figures.mean_threads)}</b> on
        average while any did</>}.
    </p>
    <SlowCalls rows={figures.slow_calls} />
    <Frames rows={figures.frames} />
  </>
);

const Place = ({ file, line, name = '' }: { file: string; line: number | null; name?: string }) => (file && line !== null
  ? <Button kind="quiet" onClick={() => showSource({ file, line })}>{placeText({ file, line })}{name && ` · ${name}`}</Button>
  : <>{file || '–'}</>);

/** The figures come first: a phone shows three columns. */
const SLOW_COLUMNS: readonly TableColumn<SlowCallRow>[] = [
  { label: 'Operator', cell: (row) => <span class="one-line" title={row.operator}>{row.operator}</span> },
  { label: 'Took', number: true, cell: (row) => columnTime(row.own_ns) },
  { label: 'Median', number: true, cell: (row) => columnTime(row.median_ns) },
  { label: 'Longer by', number: true, cell: (row) => columnTime(row.own_ns - row.median_ns) },
  { label: 'Input shapes', cell: (row) => <span class="shapes" title={row.shapes}>{row.shapes || '–'}</span> },
  { label: 'Other threads', cell: (row) => (row.contended ? <span class="contended">▲ contended, {plural(row.threads, 'thread')}</span> : plural(row.threads, 'thread')) },
  { label: 'Start', number: true, cell: (row) => moment(row.start_ns) },
  { label: 'Step', cell: (row) => row.step ?? '–' },
  { label: 'Place', cell: (row) => <Place file={row.file} line={row.line} /> },
];

function SlowCalls({ rows }: { rows: readonly SlowCallRow[] }) {
  const contended = rows.filter((row) => row.contended).length;
  return (
    <section class="chart" aria-label="Slow calls">
      <div class="chart-head">
        <h2>Slow calls</h2>
        <span class="muted">calls that took far longer than the median of the same operator and shapes{contended > 0 && `; ${count(contended)} of ${count(rows.length)} while other threads ran operators`}</span>
      </div>
      {rows.length > 0 ? <DataTable label="Table of slow calls" columns={SLOW_COLUMNS} rows={rows} /> : <p class="muted">None.</p>}
    </section>
  );
}

/** Recordings of 2021 have stacks of operators without times of functions. */
const NoFrames = () => (report.value?.recorded.includes('stacks')
  ? <>The recording has the stacks of operators, but no times of Python functions. A current PyTorch records both with <code>with_stack=True</code>.</>
  : <>The recording has no Python stacks; record with <code>with_stack=True</code>.</>);

const FRAME_COLUMNS: readonly TableColumn<FrameRow>[] = [
  { label: 'Function', cell: (row) => <span class="one-line" title={row.function}>{row.function}</span> },
  { label: 'Self time', number: true, cell: (row) => columnTime(row.self_ns) },
  { label: 'Calls', number: true, cell: (row) => count(row.calls) },
  { label: 'Place', cell: (row) => <Place file={row.file} line={row.line} /> },
  { label: 'Code', cell: (row) => (row.own_code ? 'own' : 'library') },
];

function Frames({ rows }: { rows: readonly FrameRow[] | null }) {
  const [ownOnly, setOwnOnly] = useState(false);
  const shown = (rows ?? []).filter((row) => row.own_code || !ownOnly);
  return (
    <section class="chart" aria-label="Python between operators">
      <div class="chart-head">
        <h2>Python between operators</h2>
        <span class="muted">time in a function itself, outside operators and what it calls; totals over the recording</span>
        <span class="chart-space" />
        {rows && <label class="check"><input type="checkbox" checked={ownOnly} onChange={(event) => setOwnOnly(event.currentTarget.checked)} /> Only my code</label>}
      </div>
      {rows === null ? <p class="muted"><NoFrames /></p>
        : shown.length > 0 ? <DataTable label="Table of Python functions" columns={FRAME_COLUMNS} rows={shown} />
          : <p class="muted">{rows.length > 0 ? 'No function of your own code.' : 'None.'}</p>}
    </section>
  );
}
