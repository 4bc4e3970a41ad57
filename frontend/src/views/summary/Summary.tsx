/** The profile at a glance. */

import type { ProfileReport } from '../../api/types.gen';
import { busyFormula, jointFormula, stepFormula } from '../../base/formulas';
import { averaged, causeOf, groupsOf, isHost, mostly, totalOf } from '../../base/lanes';
import { overlapText, stepNow, withoutText } from '../../base/joint';
import { filtered } from '../../base/ranking';
import { listed } from '../../base/recording';
import { spread } from '../../base/statistics';
import { nanoseconds, plural, share } from '../../base/units';
import { basisText, capital, STEP_BASIS } from '../../base/words';
import { StackedBar } from '../../components/StackedBar';
import { setQuery } from '../../state/actions';
import { findings, mutedFindings } from '../../state/findings';
import { per } from '../../state/profile';
import { route } from '../../state/route';
import { Metric } from './Metric';
import { Recording } from './Recording';

export function Summary({ report }: { report: ProfileReport }) {
  return (
    <section class="summary" aria-label="Summary of the profile">
      <dl class="metrics">
        <StepTime report={report} />
        <Possible report={report} />
        <DeviceBusy report={report} />
      </dl>
      <TimeUse report={report} />
      <Recording report={report} />
    </section>
  );
}

/** The overview's bar with its parts grouped. */
function TimeUse({ report: { lanes = [] } }: { report: ProfileReport }) {
  const lane = averaged(lanes);
  const groups = lane ? groupsOf(lane, null) : [];
  if (!lane || groups.length === 0) return null;
  const parts = isHost(lane) ? groups.flatMap(({ slices }) => slices).map((slice) => ({ ...slice, text: share(slice.share), ...filterBy([slice]) }))
    : groups.map((group) => ({ part: group.group, label: groupText(group.label, mostly(group)), share: group.share, text: share(group.share), ...filterBy(group.slices) }));
  const of = lanes.length > 1 ? `, mean of ${lanes.length} devices` : '';
  return (
    <div class="time-use">
      <h2 class="time-use-title">Where the {nanoseconds(totalOf(groups))} of {per.value === 'step' ? 'an average step' : 'the trace'} go{of}</h2>
      <StackedBar label="Where the time goes" parts={parts} />
      {lane.communication_overlapped_ns > 0 && <p class="beside">Communication hidden behind compute: {nanoseconds(lane.communication_overlapped_ns)} per {per.value}</p>}
    </div>
  );
}

/** A part of the time lists the findings about it, where there are any. */
function filterBy(slices: Parameters<typeof causeOf>[0]): { filter?: { isOn: boolean; hint: string; onToggle: () => void } } {
  const cause = causeOf(slices);
  const found = cause === null ? 0 : filtered(findings.value, cause).length;
  if (cause === null || found === 0) return {};
  const isOn = route.value.q === cause;
  return { filter: { isOn, hint: isOn ? 'List all findings' : `List only the ${plural(found, 'finding')} about it`, onToggle: () => setQuery(isOn ? '' : cause) } };
}

const groupText = (label: string, most: string | null): string => (most ? `${label}, mostly ${most.toLowerCase()}` : label);

function StepTime({ report: { steps, duration_ns: duration, true_step_ns: trueStep } }: { report: ProfileReport }) {
  if (steps.median_ns === null || steps.basis === 'whole_trace')
    return <Metric name="Trace length" value={nanoseconds(duration)} note={capital(STEP_BASIS[steps.basis])} />;
  const range = spread(steps);
  return (
    <Metric name="Step time" formula={stepFormula(steps, steps.items.filter(({ oddity }) => oddity).length)} value={nanoseconds(steps.median_ns)} title={`Steps are ${STEP_BASIS[steps.basis]}`}
      note={`median of ${plural(steps.count, 'step')}${range ? `, ${nanoseconds(range.low)} to ${nanoseconds(range.high)}` : ''}`}
      more={[range?.label, `steps ${STEP_BASIS[steps.basis]}`, typeof trueStep === 'number' && `recorded; without the profiler ${nanoseconds(trueStep)}`].filter(Boolean).join('; ')} />
  );
}

/** What all fixes together are worth. */
function Possible({ report }: { report: ProfileReport }) {
  const { joint_saving: saving } = report;
  if (!saving || saving.expected_ns <= 0) return null;
  const now = stepNow(report);
  const part = now === null ? '' : `, ${share(saving.expected_ns / now)}`;
  return (
    <Metric name="Recoverable" formula={jointFormula(saving, report.findings, per.value)} value={`≈ ${nanoseconds(saving.expected_ns)}`} strong wide
      note={`per ${per.value}${part}; ${nanoseconds(saving.low_ns)} to ${nanoseconds(saving.high_ns)}; ${basisText(saving.basis)}`}
      more={[withoutText(report, per.value), overlapText(report), mutedFindings.value.length > 0 && 'Muted findings count, too.'].filter(Boolean).join(' ')} />
  );
}

function DeviceBusy({ report: { breakdown, devices } }: { report: ProfileReport }) {
  if (breakdown.device_busy_ns === null || breakdown.wall_ns <= 0) return null;
  const names = [...new Set(devices.map((device) => device.name || device.kind))];
  return (
    <Metric name="Device busy" formula={busyFormula(breakdown.device_busy_ns, breakdown.wall_ns, devices.length)} value={share(breakdown.device_busy_ns / breakdown.wall_ns)}
      note={`${devices.length > 1 ? `average of ${devices.length} devices: ` : ''}${listed(names)}`} />
  );
}
