/** Devices, recorded data, and reliability of the recording. */

import type { ProfileReport } from '../../api/types.gen';
import { jobSettings } from '../../base/jobSettings';
import { withoutDevice } from '../../base/ledger';
import { RECORDINGS } from '../../base/recording';
import { spanText } from '../../base/selection';
import { count, nanoseconds, share } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Message } from '../../components/Spans';

export const Setup = ({ report }: { report: ProfileReport }) => (
  <div class="setup">
    <section>
      <h2>Devices</h2>
      {report.devices.length === 0 ? <p class="muted">{withoutDevice(report.ledger)}: no device work was recorded.</p> : (
        <DataTable label="Devices" rows={report.devices} columns={[
          { label: 'Device', cell: (device) => `${device.kind}:${device.index}` },
          { label: 'Name', cell: (device) => device.name || 'not recorded' },
          { label: 'Compute capability', cell: (device) => device.compute_capability ?? '–' },
          { label: 'Limits', cell: (device) => device.limits ?? 'not known' },
        ]} />
      )}
    </section>
    <section>
      <h2>Recorded</h2>
      <ul class="recorded">
        {RECORDINGS.map(({ what, label, how }) => (report.recorded.includes(what)
          ? <li><span class="chip">✓</span> {label}</li>
          : <li><span class="muted">✕ no {label}</span>: record <Message text={how} /></li>))}
      </ul>
      <dl class="facts">
        <dt>File</dt><dd class="path">{report.path}</dd>
        <dt>Worker</dt><dd>{report.worker}{report.rank !== null && `, rank ${report.rank}`}</dd>
        {report.span && <><dt>Recorded</dt><dd>{spanText(report.span)}</dd></>}
        <dt>Length</dt><dd>{nanoseconds(report.duration_ns)}, {count(report.events)} events</dd>
      </dl>
    </section>
    <Settings report={report} />
    <Quality report={report} />
  </div>
);

/** The job's captured settings; those worth a second look have a remark. */
function Settings({ report: { settings, devices } }: { report: ProfileReport }) {
  if (!settings) return null;
  const known = jobSettings(settings, devices.length > 0);
  return (
    <section>
      <h2>Settings of the job</h2>
      {known.length === 0 ? <p class="muted">None are known.</p> : (
        <DataTable label="Settings of the job" rows={known} columns={[
          { label: 'Setting', cell: ({ name }) => name },
          { label: 'Value', cell: ({ value }) => value },
          { label: 'Remark', cell: ({ remark }) => remark && <><span class="sign-warn" aria-hidden="true">▲</span> {remark}</> },
        ]} />
      )}
    </section>
  );
}

const WORTH_A_WORD = 0.01; // of the step; the opened summary always has the figure

function Quality({ report: { quality, residual } }: { report: ProfileReport }) {
  const { dropped_events: dropped, parent_mismatch: mismatch, notes } = quality;
  const lines = [
    ...notes,
    ...(dropped > 0 ? [`${count(dropped)} events could not be used and were left out.`] : []),
    ...(mismatch ? [`${share(mismatch)} of the Python frames have another parent than the recorded one.`] : []),
    ...(typeof residual === 'number' && Math.abs(residual) >= WORTH_A_WORD ? [`Savings are computed from the timeline, which gives the recorded step within ${share(Math.abs(residual))}.`] : []),
  ];
  return (
    <section>
      <h2>Quality of the trace</h2>
      {lines.length === 0 ? <p class="muted">Nothing to note.</p> : <ul class="notes">{lines.map((line) => <li><Message text={line} /></li>)}</ul>}
    </section>
  );
}
