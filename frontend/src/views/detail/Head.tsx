/** What a finding is and what it is worth. */

import type { RefObject } from 'preact';
import type { Finding, Saving } from '../../api/types.gen';
import { costFormula, savingFormula } from '../../base/formulas';
import { stepNow } from '../../base/joint';
import { isMuted } from '../../base/mutes';
import { count, inUnit, nanoseconds, plural, share } from '../../base/units';
import { atMost, basisText, capital, NO_SAVING, rangeText, SAVING_BASIS, times } from '../../base/words';
import { Button, CopyButton } from '../../components/Button';
import { Explained } from '../../components/Explained';
import { RankBadge } from '../../components/RankBadge';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { muteRule, toggleMute } from '../../state/actions';
import { copyFinding, copyLink } from '../../state/exports';
import { savingUnit } from '../../state/findings';
import { mutes } from '../../state/mutes';
import { per, report } from '../../state/profile';
import { ranksOf } from '../../state/ranks';
import { rules, ruleTitle } from '../../state/rules';

interface Props { finding: Finding; heading: RefObject<HTMLHeadingElement | null> }

export function Head({ finding, heading }: Props) {
  const { cost_ns: cost } = finding;
  const part = finding.share;
  return (
    <header class="detail-head">
      <p class="eyebrow">
        <SeverityGlyph level={finding.severity} />
        {capital(finding.severity)} · {ruleTitle(finding.rule)} <span class="rule-code">{rules.value.get(finding.rule)?.code}</span>
        <RankBadge ranks={ranksOf(finding)} />
      </p>
      <h1 id="finding-title" ref={heading} tabIndex={-1}><Message text={finding.message} /></h1>
      <dl class="worth">
        {finding.saving && <SavingFigure saving={finding.saving} costNs={cost} />}
        <div>
          <dt>Costs<Explained what="Costs" lines={costFormula(cost, part, finding.matches, per.value)} /></dt>
          <dd class="worth-value">{nanoseconds(cost)}<span class="per"> per {per.value}</span></dd>
          {part !== null && <dd class="worth-note">{share(part)} of the {per.value} time</dd>}
        </div>
        <div>
          <dt>Matches</dt>
          <dd class="worth-value">{count(finding.matches)}</dd>
          {per.value === 'step' && <dd class="worth-note">{count(finding.matches_per_step)} per step</dd>}
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
        <MuteButtons finding={finding} />
      </div>
    </header>
  );
}

function MuteButtons({ finding }: { finding: Finding }) {
  if (isMuted(mutes.value, finding)) return <Button icon="show" onClick={() => toggleMute(finding)}>Show again</Button>;
  return (
    <>
      <Button icon="mute" onClick={() => toggleMute(finding)}>Mute</Button>
      <Button kind="quiet" onClick={() => muteRule(finding.rule)}>Mute this check</Button>
    </>
  );
}

const WORTH_TELLING = 1.005; // less reads as 1.00×

function SavingFigure({ saving, costNs }: { saving: Saving; costNs: number }) {
  const unit = savingUnit.value;
  const range = rangeText(saving, unit);
  const now = report.value ? stepNow(report.value) : null;
  return (
    <div class="saves">
      <dt>Fix saves about<Explained what="Fix saves about" lines={savingFormula(saving, costNs, now, per.value)} /></dt>
      {saving.expected_ns > 0 ? <dd class="worth-value">{inUnit(saving.expected_ns, unit)} {unit.name}<span class="per"> per {per.value}</span></dd>
        : <dd class="worth-value">{capital(NO_SAVING)}</dd>}
      <dd class="worth-note">
        {saving.expected_ns <= 0 ? atMost(saving) : [range && `${range} ${unit.name}`, saving.speedup !== null && saving.speedup >= WORTH_TELLING && `${times(saving.speedup)} speed`]
          .filter(Boolean).join(' · ')}
      </dd>
      <dd class="worth-note"><b>{capital(basisText(saving.basis))}</b>: {saving.basis.map((basis) => SAVING_BASIS[basis]).join('; ')}</dd>
    </div>
  );
}
