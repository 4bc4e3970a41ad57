/** The profile at a glance. */

import type { Ledger } from '../../api/ledger';
import type { ProfileReport } from '../../api/types.gen';
import { busyFormula, jointFormula, stepFormula } from '../../base/formulas';
import { accountOf, averageText, boundText, busyNs, gathered, groupsOf as ledgerGroups, hostPace, isIn, isOfStart, isWhole, sourceText, stepSpread } from '../../base/ledger';
import { averaged, causeOf, groupsOf, isHost, mostly, totalOf } from '../../base/lanes';
import { overlapText, stepNow } from '../../base/joint';
import { filtered } from '../../base/ranking';
import { listed } from '../../base/recording';
import { spread } from '../../base/statistics';
import { nanoseconds, plural, share } from '../../base/units';
import { basisText, capital, likelihoodText, STEP_BASIS, uncapital } from '../../base/words';
import { StackedBar } from '../../components/StackedBar';
import { setQuery } from '../../state/actions';
import { findings, mutedFindings } from '../../state/findings';
import { ledger, per } from '../../state/profile';
import { route } from '../../state/route';
import { narrow } from '../../state/viewport';
import { Metric } from './Metric';
import { Recording } from './Recording';

export function Summary({ report }: { report: ProfileReport }) {
  const account = ledger.value;
  const use = account ? <LedgerUse ledger={account} /> : <TimeUse report={report} />;
  const figures = (
    <dl class="metrics">
      {account ? <StepLength ledger={account} report={report} /> : <StepTime report={report} />}
      <Possible report={report} />
      <DeviceBusy report={report} />
    </dl>
  );
  return (
    <section class="summary" aria-label="Summary of the profile">
      <Verdict report={report} />
      {narrow.value && use}
      {narrow.value ? <details class="summary-more"><summary>Figures and recording</summary>{figures}<Recording report={report} /></details>
        : <>{figures}{use}<Recording report={report} /></>}
    </section>
  );
}

/** True if savings are shown of the average step, not of the median one. */
const isOfAverage = ({ true_step_ns: trueStep }: ProfileReport, now: number | null): boolean =>
  now !== null && typeof trueStep !== 'number' && ledger.value !== null && now !== ledger.value.step_ns.median;

/** The whole answer in one sentence. */
function Verdict({ report }: { report: ProfileReport }) {
  const { joint_saving: saving } = report;
  const now = stepNow(report);
  const found = findings.value.length;
  const largest = ledger.value && accountOf(ledger.value, null).rows[0];
  if (ledger.value && isOfStart(ledger.value)) {
    return <p class="verdict"><b>Record steady steps first.</b> What is found here is of this recording, not of each step of the job.</p>;
  }
  if (found > 0 && saving && saving.expected_ns > 0) {
    return (
      <p class="verdict">
        {found === 1 ? 'One change' : `${found} changes together`} would save about <b>{nanoseconds(saving.expected_ns)}</b>
        {now === null ? '' : ` of ${nanoseconds(now)}`} per {per.value}{isOfAverage(report, now) && ' on average'}{now === null ? '' : <> <span>({share(saving.expected_ns / now)})</span></>}.
      </p>
    );
  }
  if (!largest) return null;
  const said = found > 0 ? 'No change that was found is expected to save time.' : 'No check found a change to make.';
  return <p class="verdict">{said} The largest part: {boundText(largest, per.value)}.</p>;
}

/** The parts of the account: the overview has its entries. */
function LedgerUse({ ledger: account }: { ledger: Ledger }) {
  const average = accountOf(account, null);
  const parts = gathered(ledgerGroups(average)).map((part) => ({
    part: part.part, label: part.group === 'other' ? part.label : groupText(part.label, mostly(part)), share: part.share, text: share(part.share),
    ...filterOf(average.rows.flatMap(({ entry }) => (isIn(part, entry) ? entry.finding_id ?? [] : []))),
  }));
  const hidden = average.rows.reduce((sum, { entry }) => sum + (entry.hidden_ns ?? 0), 0) / account.step_ns.n;
  return (
    <div class="time-use">
      <h2 class="time-use-title">Where the {nanoseconds(average.whole)} of {averageText(account)} go</h2>
      <StackedBar label="Where the time goes" parts={parts} />
      {hidden > 0 && <p class="beside">Hidden behind other work: {nanoseconds(hidden)} per {per.value}</p>}
    </div>
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

interface Filtering { filter?: { isOn: boolean; hint: string; onToggle: () => void } }

/** A part of the time lists the findings about it, if there are any. */
const filterBy = (slices: Parameters<typeof causeOf>[0]): Filtering => filterTo(causeOf(slices));

/** The subjects of these findings, the one about the largest part first. */
const filterOf = ([id]: readonly string[]): Filtering => filterTo(findings.value.find((each) => each.id === id)?.category ?? null);

function filterTo(cause: string | null): Filtering {
  const found = cause === null ? 0 : filtered(findings.value, cause).length;
  if (cause === null || found === 0) return {};
  const isOn = route.value.q === cause;
  return { filter: { isOn, hint: isOn ? 'List all findings' : `List only the ${plural(found, 'finding')} about it`, onToggle: () => setQuery(isOn ? '' : cause) } };
}

const groupText = (label: string, most: string | null): string => (most ? `${label}, mostly ${most.toLowerCase()}` : label);

function StepLength({ ledger: account, report: { true_step_ns: trueStep, steps: { items } } }: { ledger: Ledger; report: ProfileReport }) {
  const { step_ns: { median, n }, step_source: source } = account;
  if (isWhole(account)) return <Metric name="Recording" value={nanoseconds(median)} note={capital(sourceText(source))} />;
  const range = stepSpread(account);
  const host = hostPace(account);
  return (
    <Metric name="Step time" formula={stepFormula({ basis: source, count: n, median_ns: median }, items.filter(({ oddity }) => oddity).length)} value={nanoseconds(median)}
      note={n === 1 ? 'the one step' : `median of ${plural(n, 'step')}${range ? `, ${nanoseconds(range.low)} to ${nanoseconds(range.high)}` : ''}`}
      more={[range?.label, `steps ${sourceText(source)}`, host !== null && `the host takes ${nanoseconds(host)} to run one`,
        typeof trueStep === 'number' && `recorded; without the profiler ${nanoseconds(trueStep)}`].filter(Boolean).join('; ')} />
  );
}

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

/** Duration of a step after all fixes; the verdict has their saving. */
function Possible({ report }: { report: ProfileReport }) {
  const { joint_saving: saving } = report;
  if (!saving || saving.expected_ns <= 0) return null;
  const now = stepNow(report);
  const left = now === null ? nanoseconds(saving.expected_ns) : nanoseconds(Math.max(0, now - saving.expected_ns));
  return (
    <Metric name={now === null ? 'Recoverable' : 'With all fixes'} formula={jointFormula(saving, report.findings, per.value)} value={`≈ ${left}`} strong wide
      note={`Saves ${uncapital(likelihoodText(saving))}; ${basisText(saving.basis)}`}
      more={[overlapText(report), mutedFindings.value.length > 0 && 'The figure includes muted findings.'].filter(Boolean).join(' ')} />
  );
}

function DeviceBusy({ report: { breakdown, devices } }: { report: ProfileReport }) {
  const average = ledger.value && accountOf(ledger.value, null);
  const [busy, wall] = average && devices.length > 0 ? [busyNs(ledgerGroups(average)), average.whole] : [breakdown.device_busy_ns, breakdown.wall_ns];
  if (busy === null || wall <= 0) return null;
  const names = [...new Set(devices.map((device) => device.name || device.kind))];
  return (
    <Metric name="Device busy" formula={busyFormula(busy, wall, average ? 1 : devices.length, ledger.value ? `of ${averageText(ledger.value)}` : undefined)} value={share(busy / wall)}
      note={`${!average && devices.length > 1 ? `average of ${devices.length} devices: ` : ''}${listed(names)}`} />
  );
}
