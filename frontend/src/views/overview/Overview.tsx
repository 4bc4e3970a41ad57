/** The account of a step, what stands out, and the recorded device. */

import type { ProfileReport, StepItem } from '../../api/types.gen';
import { overlapText, withoutText } from '../../base/joint';
import { accountOf, groupsOf, stepsOf } from '../../base/ledger';
import { oddSteps } from '../../base/stepStrip';
import { nanoseconds, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Message } from '../../components/Spans';
import { chooseStep } from '../../state/actions';
import { findings, mutedFindings } from '../../state/findings';
import { ledger, per, report, stepNs } from '../../state/profile';
import { route } from '../../state/route';
import { Headline } from './Headline';
import { Ledger, StepLength } from './Ledger';
import { Outlier } from './Outlier';
import { Serving } from './Serving';
import { Setup } from './Setup';
import { StepsChart } from './StepsChart';

export function Overview() {
  const shown = report.value;
  if (!shown) return null;
  const account = ledger.value;
  const items = account ? stepsOf(account.steps, shown.steps.items) : shown.steps.items;
  const step = chosenOf(items);
  return (
    <main class="page" aria-labelledby="page-title">
      <div class="page-body">
        <h1 id="page-title">Overview</h1>
        {account ? <StepLength ledger={account} /> : <Unaccounted report={shown} />}
        {shown.floor?.text && account?.recording === 'steady' && <p class="lead"><Message text={shown.floor.text} /></p>}
        <OddSteps steps={items} />
        <Without report={shown} />
        <Serving report={shown} />
        {account && <Ledger ledger={account} step={step} />}
        <Headline findings={findings.value} />
        {account && items.length > 1 && (
          <StepsChart steps={items} chosen={step} groupsAt={(index) => groupsOf(accountOf(account, index))}
            note="time of each step by part; choose one to see its parts above"
            onChoose={(index) => chooseStep(index === null ? '' : items[index]?.name ?? '')} />
        )}
        <Outlier report={shown} step={chosenOf(shown.steps.items)} />
        <Setup report={shown} />
      </div>
    </main>
  );
}

/** The step in the address, null for the average one. */
function chosenOf(items: readonly StepItem[]): number | null {
  const at = items.findIndex(({ name }) => name === route.value.step);
  return at < 0 ? null : at;
}

/** Step time without the profiler, and without all findings. */
function Without({ report: shown }: { report: ProfileReport }) {
  const { true_step_ns: trueStep } = shown;
  const median = stepNs.value;
  const sentences = [
    typeof trueStep === 'number' && median !== null ? `Recorded ${nanoseconds(median)}, without the profiler ${nanoseconds(trueStep)}: savings are of the ${trueStep < median ? 'latter' : 'former'}.` : '',
    withoutText(shown, per.value), overlapText(shown),
    mutedFindings.value.length > 0 && shown.joint_saving ? 'Muted findings count, too.' : '',
  ].filter(Boolean);
  return sentences.length > 0 ? <p class="without">{sentences.join(' ')}</p> : null;
}

/** The length of a recording without anything to account for; the notice above says why. */
const Unaccounted = ({ report: { duration_ns: duration } }: { report: ProfileReport }) =>
  <p class="lead">The recording is <b>{nanoseconds(duration)}</b> long. It contains no steps, so the step time is unknown.</p>;

const OddSteps = ({ steps }: { steps: readonly StepItem[] }) => (
  <>
    {oddSteps(steps).map(({ sign, word, names }) => (
      <p class="odd-steps">
        <span class="odd-sign" aria-hidden="true">{sign}</span> {plural(names.length, word)}: {names.slice(0, MOST_NAMES).map((name) => (
          <Button key={name} kind="quiet" onClick={() => chooseStep(name)}>{name}</Button>
        ))}{names.length > MOST_NAMES && `and ${names.length - MOST_NAMES} more`}
      </p>
    ))}
  </>
);

const MOST_NAMES = 6;
