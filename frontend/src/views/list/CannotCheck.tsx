/** As prominent as a finding: checks that could not run because the profile lacks data. */

import { listed, missing } from '../../base/recording';
import { plural } from '../../base/units';
import { Notice } from '../../components/Notice';
import { Message } from '../../components/Spans';
import { checks, outcomes } from '../../state/findings';
import { report } from '../../state/profile';
import { rules } from '../../state/rules';

export function CannotCheck() {
  const unchecked = outcomes('not_checked').flatMap(({ rule }) => rules.value.get(rule) ?? []);
  const lack = missing(report.value?.recorded ?? [], unchecked);
  if (!lack) return null;
  return (
    <Notice kind="info">
      <p><b>{lack.rules} of {plural(checks.value.length, 'check')}</b> could not run: the profile has no {listed(lack.labels)}.</p>
      <p>Record <Message text={listed(lack.how)} /> to run {lack.rules === 1 ? 'it' : 'them'}.</p>
    </Notice>
  );
}
