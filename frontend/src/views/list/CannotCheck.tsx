/** As prominent as a finding: checks that could not run because the profile lacks data. */

import { listed, missing } from '../../base/recording';
import { plural } from '../../base/units';
import { Notice } from '../../components/Notice';
import { Message } from '../../components/Spans';
import { checks, outcomes } from '../../state/findings';
import { report } from '../../state/profile';
import { rules } from '../../state/rules';

export function CannotCheck() {
  const skipped = outcomes('not_checked');
  const lack = missing(report.value?.recorded ?? [], skipped.flatMap(({ rule }) => rules.value.get(rule) ?? []), report.value?.steps.basis === 'serving_step');
  if (!lack) return null;
  const why = lack.rules === skipped.length ? ':' : lack.rules === 1 ? ', 1 of them because' : `, ${lack.rules} of them because`;
  return (
    <Notice kind="info">
      <p><b>{skipped.length} of {plural(checks.value.length, 'check')}</b> could not run{why} the profile has no {listed(lack.labels)}.</p>
      {lack.how.length > 0 && <p>Record <Message text={listed(lack.how)} /> to run {lack.rules === 1 ? 'it' : lack.how.length < lack.labels.length ? 'more of them' : 'them'}.</p>}
    </Notice>
  );
}
