/** Bars across the page: facts that the user should know before reading on. */

import { plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Notice } from '../../components/Notice';
import { ProgressBar } from '../../components/Progress';
import { Message } from '../../components/Spans';
import { cancel, chooseProfile, loadSelected, retry, revalidate } from '../../state/actions';
import { gone } from '../../state/connection';
import { newer } from '../../state/live';
import { renewed, report, reportError, stale, unfinished, working } from '../../state/profile';
import { broken, comparing, problem } from '../../state/screen';

export const Bars = () => (
  <div class="bars">
    {gone.value && (
      <Notice kind="error" action={<Button onClick={() => void revalidate()}>Retry</Button>}>
        <p><b>The server does not answer.</b> Is it still running? What is on the screen stays there.</p>
      </Notice>
    )}
    {!comparing.value && <OfProfile />}
  </div>
);

/** About the selected profile. */
const OfProfile = () => (
  <>
    {stale.value && (
      <Notice kind="info" action={<Button kind="primary" onClick={loadSelected}>Load</Button>}>
        <p>A newer recording of this profile was found.</p>
      </Notice>
    )}
    {newer.value && (
      <Notice kind="info" action={<Button onClick={() => chooseProfile(newer.value ?? {})}>Show it</Button>}>
        <p>A newer recording of this job has just come in.</p>
      </Notice>
    )}
    {report.value && working.value && (
      <Notice kind="info" action={!unfinished.value && <Button onClick={() => void cancel()}>Cancel</Button>}>
        <p>{workText()}. {working.value.stage}</p>
        <ProgressBar label={workText()} fraction={working.value.fraction} />
      </Notice>
    )}
    <OtherThanSteady />
    {report.value && reportError.value && (
      <Notice kind="error"><p><b><Message text={reportError.value.message} /></b> <Message text={reportError.value.advice} /></p></Notice>
    )}
    {problem.value && (
      <Notice kind="warning" action={broken.value && <Button onClick={() => void retry()}>Try again</Button>}>
        <p>
          <b><Message text={problem.value.error} /></b> <Message text={problem.value.advice} />
          {problem.value.recovered_events > 0 && ` This report covers the ${plural(problem.value.recovered_events, 'event')} that could be read.`}
        </p>
      </Notice>
    )}
  </>
);

/** The recording does not show steady steps. */
function OtherThanSteady() {
  const account = report.value?.ledger;
  if (!account?.banner) return null;
  return (
    <Notice kind="warning">
      <p><b><Message text={account.banner} /></b>{account.recording !== 'empty' && ' Its figures are not those of a steady step.'}</p>
      {account.left_out.map(({ reason }) => <p>Left out: <Message text={reason} /></p>)}
    </Notice>
  );
}

function workText(): string {
  if (unfinished.value) return 'The findings are there; tables and evidence follow';
  return renewed.value ? 'Working the new measurements into the savings' : 'Loading the newer recording';
}
