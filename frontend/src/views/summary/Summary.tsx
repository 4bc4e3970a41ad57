/** The profile at a glance. */

import type { Ledger } from '../../api/ledger';
import type { ProfileReport } from '../../api/types.gen';
import { busyFormula, jointFormula, stepFormula } from '../../base/formulas';
import { accountOf, averageText, boundText, busyNs, gathered, hostPace, isWhole, mostly, stepSpread } from '../../base/ledger';
import { overlapText, stepNow } from '../../base/joint';
import { filtered } from '../../base/ranking';
import { listed } from '../../base/recording';
import { nanoseconds, plural, share } from '../../base/units';
import { basisText, capital, likelihoodText, uncapital } from '../../base/words';
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
  const use = account && <LedgerUse ledger={account} />;
  const figures = (
    <dl class="metrics">
      {account ? <StepLength ledger={account} report={report} /> : <Metric name="Recording" value={nanoseconds(report.duration_ns)} note="No steps" />}
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
  if (ledger.value?.is_one_time) {
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
  const parts = gathered(average).map((part) => ({
    colour: part.colour, label: groupText(part.label, mostly(part)), share: part.share, text: share(part.share),
    ...filterOf(part.entries.flatMap((entry) => entry.finding_id ?? [])),
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

interface Filtering { filter?: { isOn: boolean; hint: string; onToggle: () => void } }

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
  const { step_ns: { median, n }, step_source: source, step_source_text: sourceText } = account;
  if (isWhole(account)) return <Metric name="Recording" value={nanoseconds(median)} note={capital(sourceText)} />;
  const range = stepSpread(account);
  const host = hostPace(account);
  return (
    <Metric name="Step time" formula={stepFormula({ basis: source, count: n, median_ns: median }, items.filter(({ oddity }) => oddity).length)} value={nanoseconds(median)}
      note={n === 1 ? 'the one step' : `median of ${plural(n, 'step')}${range ? `, ${nanoseconds(range.low)} to ${nanoseconds(range.high)}` : ''}`}
      more={[range?.label, `steps ${sourceText}`, host !== null && `the host takes ${nanoseconds(host)} to run one`,
        typeof trueStep === 'number' && `recorded; without the profiler ${nanoseconds(trueStep)}`].filter(Boolean).join('; ')} />
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

function DeviceBusy({ report: { devices } }: { report: ProfileReport }) {
  const account = ledger.value;
  if (!account || devices.length === 0) return null;
  const average = accountOf(account, null);
  const busy = busyNs(average);
  const names = [...new Set(devices.map((device) => device.name || device.kind))];
  return <Metric name="Device busy" formula={busyFormula(busy, average.whole, averageText(account))} value={share(busy / average.whole)} note={listed(names)} />;
}
