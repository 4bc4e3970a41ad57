/** The most valuable findings. */

import type { Finding, Saving } from '../../api/types.gen';
import { sorted } from '../../base/ranking';
import { accountOf, boundText } from '../../base/ledger';
import { actionOf } from '../../base/actionTitles';
import { nanoseconds } from '../../base/units';
import { noSavingText } from '../../base/words';
import { Button } from '../../components/Button';
import { RankBadge } from '../../components/RankBadge';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { chooseView, openFinding } from '../../state/actions';
import { mutedFindings, outcomes } from '../../state/findings';
import { ledger, per } from '../../state/profile';
import { ranksOf } from '../../state/ranks';

const TOP = 3;

function noneText(): string {
  if (mutedFindings.value.length > 0) return 'All findings are muted.';
  const [largest] = ledger.value ? accountOf(ledger.value, null).rows : [];
  if (largest) return `No check found anything to fix. ${boundText(largest, per.value)}.`;
  const unchecked = outcomes('clean').length === 0 && outcomes('not_checked').length > 0;
  return unchecked ? 'Nothing could be checked: this recording lacks what the checks need.' : 'No check found anything wrong with this profile.';
}

const Worth = ({ saving }: { saving: Saving | null }) => {
  if (!saving) return <span class="muted">no saving known</span>;
  return saving.expected_ns > 0 ? <>saves <b>{nanoseconds(saving.expected_ns)}</b> per {per.value}</> : <span class="muted">{noSavingText(saving)}</span>;
};

export function Headline({ findings }: { findings: readonly Finding[] }) {
  const top = sorted(findings, 'saving').slice(0, TOP);
  if (top.length === 0)
    return <p class="muted">{noneText()}</p>;
  return (
    <section class="headline" aria-label="Findings worth most">
      <div class="chart-head">
        <h2>Worth most</h2>
        <span class="chart-space" />
        {findings.length > top.length && <Button kind="quiet" onClick={() => chooseView('findings')}>All {findings.length} findings</Button>}
      </div>
      <ol>
        {top.map((finding) => (
          <li key={finding.id}>
            <button type="button" class="headline-finding" onClick={() => openFinding(finding.id, true)}>
              <SeverityGlyph level={finding.severity} />
              <span class="headline-text"><Message text={actionOf(finding)} /><RankBadge ranks={ranksOf(finding)} /></span>
              <span class="number"><Worth saving={finding.saving} /></span>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}
