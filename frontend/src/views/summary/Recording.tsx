/** Recorded data, the device, and the reliability of the recording. */

import type { Device, ProfileReport } from '../../api/types.gen';
import { plainText } from '../../base/inline';
import { withoutDevice } from '../../base/ledger';
import { RECORDINGS } from '../../base/recording';
import { spanText } from '../../base/selection';
import { count, nanoseconds, plural, share } from '../../base/units';
import { capital } from '../../base/words';
import { Explained } from '../../components/Explained';
import { Message } from '../../components/Spans';

export function Recording({ report }: { report: ProfileReport }) {
  const { quality } = report;
  const warnings = quality.notes.length + (quality.dropped_events > 0 ? 1 : 0);
  return (
    <details class="recording">
      <summary>
        <span class="recording-line">
          {deviceText(report)} · {nanoseconds(report.duration_ns)} · {plural(report.events, 'event')}
          {report.rank !== null && ` · rank ${report.rank}`}
        </span>
        <span class="chips">
          {RECORDINGS.map(({ what, label, how }) => (report.recorded.includes(what)
            ? <span class="chip">✓ {what === 'steps' ? what : label}</span>
            : what === 'steps' && otherSteps(report) ? <span class="chip" title={capital(otherSteps(report))}>✓ steps</span>
            : <span class="chip off" title={`Not recorded. Record ${plainText(how)}.`}>✕ no {what === 'steps' ? what : label}</span>))}
          {warnings > 0 && <span class="chip warn">▲ {plural(warnings, 'note')} on quality</span>}
        </span>
      </summary>
      <dl class="facts">
        <dt>File</dt><dd class="path">{report.path}</dd>
        <dt>Worker</dt><dd>{report.worker}</dd>
        <dt>Recorded</dt><dd>{spanText(report.span)}</dd>
        {report.devices.map((device) => (
          <><dt>{device.kind} {device.index}</dt><dd>{deviceDetail(device)}</dd></>
        ))}
        {typeof report.residual === 'number' && (
          <><dt>Computed step<Explained what="Computed step" lines={RESIDUAL} /></dt><dd>off by at most {share(Math.abs(report.residual))}</dd></>
        )}
        {quality.dropped_events > 0 && <><dt>Left out</dt><dd>{count(quality.dropped_events)} events that could not be used</dd></>}
        {quality.parent_mismatch !== null && quality.parent_mismatch > 0 && (
          <><dt>Stacks</dt><dd>{share(quality.parent_mismatch)} of the Python frames have another parent than the recorded one.</dd></>
        )}
        {quality.notes.map((note) => <><dt>Note</dt><dd><Message text={note} /></dd></>)}
      </dl>
    </details>
  );
}

const MARKS: ReadonlySet<string> = new Set(['serving_step', 'framework_step', 'optimizer_step', 'data_loader']);

/** What shows the steps if the profiler does not mark them; empty if nothing does. */
const otherSteps = ({ ledger: { step_source: source, step_source_text: text } }: ProfileReport): string => (MARKS.has(source) ? text : '');

const RESIDUAL = [{
  name: 'Computed step', text: 'Savings are computed from the timeline: all events start again as early as what they wait for allows. '
    + 'Without any change, that should give the recorded step. This is the largest difference of any step.',
}];

function deviceText({ devices, ledger }: ProfileReport): string {
  const [first] = devices;
  if (!first) return withoutDevice(ledger);
  const name = first.name || first.kind;
  return devices.length > 1 ? `${devices.length} × ${name}` : name;
}

const deviceDetail = ({ name, compute_capability: capability }: Device): string =>
  (name || 'name not recorded') + (capability === null ? '' : `, compute capability ${capability}`);
