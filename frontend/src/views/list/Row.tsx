/** One finding in the list. */

import { useRef } from 'preact/hooks';
import { useComputed, useSignalEffect } from '@preact/signals';
import type { Finding } from '../../api/types.gen';
import { stepNow } from '../../base/joint';
import { placeText } from '../../base/places';
import { diagnosisOf, actionOf } from '../../base/actionTitles';
import { columnInUnit, count, nanoseconds, share } from '../../base/units';
import { atMost, basisText, likelihoodText, limitsText, NO_SAVING, uncapital } from '../../base/words';
import { RankBadge } from '../../components/RankBadge';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { openFinding as choose } from '../../state/actions';
import { biggestSaving, finding as openFinding, rowInFocus, savingUnit } from '../../state/findings';
import { useWantedFocus } from '../../state/focus';
import { per, report } from '../../state/profile';
import { ranksOf } from '../../state/ranks';
import { narrow } from '../../state/viewport';

export function Row({ finding }: { finding: Finding }) {
  const row = useRef<HTMLDivElement>(null);
  const isOpen = useComputed(() => openFinding.value?.id === finding.id); // so that a move draws two rows, not all
  const hasTabStop = useComputed(() => rowInFocus.value === finding.id);
  useWantedFocus('row', row, () => hasTabStop.value);
  useSignalEffect(() => {
    if (!narrow.value && hasTabStop.value) row.current?.scrollIntoView({ block: 'nearest' });
  });
  return (
    <div class="row" role="option" ref={row} aria-selected={isOpen.value} tabIndex={hasTabStop.value ? 0 : -1} data-finding={finding.id}
      onClick={() => choose(finding.id, false)}>
      <SeverityGlyph level={finding.severity} />
      <span class="row-title"><Message text={actionOf(finding)} /></span>
      <SavingCell finding={finding} />
      {diagnosisOf(finding) && <span class="row-diagnosis"><Message text={diagnosisOf(finding)} /></span>}
      <span class="row-facts"><RankBadge ranks={ranksOf(finding)} />{facts(finding)}</span>
    </div>
  );
}

function SavingCell({ finding: { saving, cost_ns: cost } }: { finding: Finding }) {
  const unit = savingUnit.value;
  const step = report.value && stepNow(report.value);
  if (!saving)
    return <span class="saving" title="No saving could be estimated"><b class="no-saving">{nanoseconds(cost)}</b><small>cost/{per.value}</small></span>;
  if (saving.expected_ns <= 0)
    return <span class="saving" title={basisText(saving.basis)}><b class="no-saving">{NO_SAVING}</b><small>{atMost(saving)}</small></span>;
  const part = `${step ? `${share(saving.expected_ns / step)} of the step time` : `per ${per.value}`}; ${uncapital(likelihoodText(saving))}; ${basisText(saving.basis)}`;
  const width = biggestSaving.value > 0 ? saving.expected_ns / biggestSaving.value : 0;
  return (
    <span class="saving" title={part}>
      <b>{columnInUnit(saving.expected_ns, unit)} {unit.name}<span class="per">/{per.value}</span></b>
      <small>{saving.basis.includes('measured') && <span class="is-measured">✓ measured </span>}{limitsText(saving, unit)}</small>
      <span class="saving-bar" aria-hidden="true"><span style={{ width: `${Math.max(width * 100, 1)}%` }} /></span>
    </span>
  );
}

function facts({ matches, places, confidence }: Finding): string {
  const [first] = places;
  const where = first ? `${placeText(first)}${places.length > 1 ? ` +${places.length - 1}` : ''}` : 'no source line';
  return `${count(matches)}× · ${where} · confidence ${confidence}`;
}
