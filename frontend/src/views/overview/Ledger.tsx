/** The account of the step: its duration and its parts, entry by entry. */

import type { Ledger as Account } from '../../api/ledger';
import { accountOf, averageText, groupsOf, hostPace, isWhole, stepSpread } from '../../base/ledger';
import { nanoseconds, partShare, plural } from '../../base/units';
import { capital } from '../../base/words';
import { Message } from '../../components/Spans';
import { Entries } from './Entries';
import { PartsChart } from './PartsChart';

/** The duration of a step, the steps it comes from, and the pace of the host alone. */
export function StepLength({ ledger }: { ledger: Account }) {
  const { step_ns: { median, mean, n }, left_out: leftOut } = ledger;
  const host = hostPace(ledger);
  const range = stepSpread(ledger);
  return (
    <>
      <p class="lead">
        {isWhole(ledger) ? <>The recording is <b>{nanoseconds(median)}</b> long. {capital(ledger.step_source_text)}.</>
          : n === 1 ? <>The one step takes <b>{nanoseconds(median)}</b>; steps are {ledger.step_source_text}.</>
            : <>A step takes <b>{nanoseconds(median)}</b> (median of {plural(n, 'step')}{range && `, ${range.label} ${nanoseconds(range.low)} to ${nanoseconds(range.high)}`}
              {nanoseconds(mean) !== nanoseconds(median) && `, on average ${nanoseconds(mean)}`}); steps are {ledger.step_source_text}.</>}
        {host !== null && <> The host takes <b>{nanoseconds(host)}</b> to run one.</>}
      </p>
      {ledger.recording === 'steady' && leftOut.map(({ reason }) => <p class="beside">Left out: <Message text={reason} /></p>)}
    </>
  );
}

export function Ledger({ ledger, step }: { ledger: Account; step: number | null }) {
  const account = accountOf(ledger, step);
  if (account.rows.length === 0) return null;
  const what = step === null ? averageText(ledger) : ledger.steps[step]?.name ?? '';
  const groups = groupsOf(account);
  const time = step === null && !isWhole(ledger) ? 'Time per step' : 'Time';
  return (
    <>
      <PartsChart title="Where the time goes" note={`${capital(what)}: ${nanoseconds(account.whole)}`} table="Parts of the step" time={time} groups={groups}
        below={<ul class="legend">{groups.map(({ label, share: part }) => <li>{label} <b class="number">{partShare(part)}</b></li>)}</ul>} />
      <Entries account={account} what={what} time={time} />
    </>
  );
}
