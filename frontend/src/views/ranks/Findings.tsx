/** Findings about several ranks, and findings of single ranks, each shown once for all of them. */

import type { Ranks, SharedFinding } from '../../api/types.gen';
import { isMuted } from '../../base/mutes';
import { nanoseconds } from '../../base/units';
import { NO_SAVING } from '../../base/words';
import { RankBadge } from '../../components/RankBadge';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { openFinding, openRank } from '../../state/actions';
import { mutes } from '../../state/mutes';
import { ranksOf, runFindings } from '../../state/ranks';

const MOST = 8;

export function Findings({ ranks: { rows, findings } }: { ranks: Ranks }) {
  const openWorst = ({ id, worst_rank: rank }: SharedFinding): void => {
    const row = rows.find((each) => each.rank === rank);
    if (row) openRank(row, id);
  };
  const together = runFindings.value.filter((each) => !isMuted(mutes.value, each));
  const own = findings.filter((each) => !isMuted(mutes.value, each));
  if (together.length + own.length === 0) return <p class="muted">No check found anything wrong with these ranks.</p>;
  return (
    <section class="headline" aria-label="Findings of the ranks">
      <div class="chart-head">
        <h2>Findings</h2>
        <span class="muted">{own.length > MOST ? `the ${MOST} of ${own.length} that are worth most; all are in the ranks’ own lists` : 'each opens on the rank where it costs most'}</span>
      </div>
      <ol>
        {together.map((finding) => (
          <li key={finding.id}>
            <Row {...finding} saving={finding.saving?.expected_ns ?? null} ranks={ranksOf(finding)} onOpen={() => openFinding(finding.id, true)} />
          </li>
        ))}
        {own.slice(0, MOST).map((finding) => (
          <li key={finding.id}>
            <Row {...finding} saving={finding.saving_ns || null} ranks={finding.text} onOpen={() => openWorst(finding)} />
          </li>
        ))}
      </ol>
    </section>
  );
}

interface RowProps { severity: SharedFinding['severity']; message: string; ranks: string; saving: number | null; onOpen: () => void }

const Row = ({ severity, message, ranks, saving, onOpen }: RowProps) => (
  <button type="button" class="headline-finding" onClick={onOpen}>
    <SeverityGlyph level={severity} />
    <span class="headline-text"><Message text={message} /><RankBadge ranks={ranks} /></span>
    <span class="number">{saving ? <>saves <b>{nanoseconds(saving)}</b> per step</> : <span class="muted">{saving === null ? 'no saving known' : NO_SAVING}</span>}</span>
  </button>
);
