/** What a finding is and what it is worth. */

import type { RefObject } from 'preact';
import type { Finding, Saving } from '../../api/types.gen';
import { count, inUnit, plural, share } from '../../base/units';
import { capital, perWhat, rangeText, SAVING_BASIS, times } from '../../base/words';
import { CopyButton } from '../../components/Button';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { copyFinding, copyLink } from '../../state/exports';
import { savingUnit } from '../../state/findings';
import { report } from '../../state/profile';
import { rules, ruleTitle } from '../../state/rules';

interface Props { finding: Finding; heading: RefObject<HTMLHeadingElement | null> }

export function Head({ finding, heading }: Props) {
  const unit = savingUnit.value;
  const per = perWhat(report.value?.steps.basis ?? 'none');
  const { cost_ns: cost, share: part } = finding;
  return (
    <header class="detail-head">
      <p class="eyebrow">
        <SeverityGlyph level={finding.severity} />
        {capital(finding.severity)} · {ruleTitle(finding.rule)} <span class="rule-code">{rules.value.get(finding.rule)?.code}</span>
      </p>
      <h1 id="finding-title" ref={heading} tabIndex={-1}><Message text={finding.message} /></h1>
      <dl class="worth">
        {finding.saving && <SavingFigure saving={finding.saving} per={per} />}
        <div>
          <dt>Costs now</dt>
          <dd class="worth-value">{inUnit(cost, unit)} {unit.name}<span class="per"> per {per}</span></dd>
          {part !== null && <dd class="worth-note">{share(part)} of the {per} time</dd>}
        </div>
        <div>
          <dt>Matches</dt>
          <dd class="worth-value">{count(finding.matches)}</dd>
          {per === 'step' && <dd class="worth-note">{count(finding.matches_per_step)} per step</dd>}
        </div>
        <div>
          <dt>Confidence</dt>
          <dd class="worth-value">{capital(finding.confidence)}</dd>
          {finding.places.length > 0 && <dd class="worth-note">{plural(finding.places.length, 'place')} in the source</dd>}
        </div>
      </dl>
      <div class="actions">
        <CopyButton icon="link" label="Copy link" onCopy={copyLink} />
        <CopyButton label="Copy as Markdown" onCopy={() => copyFinding(finding)} />
      </div>
    </header>
  );
}

function SavingFigure({ saving, per }: { saving: Saving; per: string }) {
  const unit = savingUnit.value;
  const range = rangeText(saving, unit);
  return (
    <div class="saves">
      <dt>Fix saves about</dt>
      <dd class="worth-value">{inUnit(saving.expected_ns, unit)} {unit.name}<span class="per"> per {per}</span></dd>
      <dd class="worth-note">
        {[range && `${range} ${unit.name}`, saving.speedup !== null && `${times(saving.speedup)} speed`].filter(Boolean).join(' · ')}
      </dd>
      <dd class="worth-note">{capital(saving.basis.map((basis) => SAVING_BASIS[basis]).join('; '))}</dd>
    </div>
  );
}
