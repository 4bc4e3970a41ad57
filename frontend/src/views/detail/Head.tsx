/** A finding's title and value. */

import type { RefObject } from 'preact';
import type { Finding, Saving } from '../../api/types.gen';
import { costFormula, savingFormula } from '../../base/formulas';
import { stepNow } from '../../base/joint';
import { isMuted } from '../../base/mutes';
import { diagnosisOf, actionOf } from '../../base/actionTitles';
import { count, nanoseconds, plural, share } from '../../base/units';
import { atMost, basisText, capital, FROM_CAPTURE, likelihoodText, matchesText, NO_SAVING, times } from '../../base/words';
import { Button, CopyButton } from '../../components/Button';
import { Explained } from '../../components/Explained';
import { RankBadge } from '../../components/RankBadge';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { muteRule, toggleMute } from '../../state/actions';
import { copyFinding, copyForAssistant, copyLink } from '../../state/exports';
import { mutes } from '../../state/mutes';
import { ledger, per, report } from '../../state/profile';
import { go } from '../../state/route';
import { ranksOf } from '../../state/ranks';
import { rules, ruleTitle } from '../../state/rules';

interface Props { finding: Finding; heading: RefObject<HTMLHeadingElement | null> }

export function Head({ finding, heading }: Props) {
  const { cost_ns: cost } = finding;
  return (
    <header class="detail-head">
      <p class="eyebrow">
        <SeverityGlyph level={finding.severity} />
        {capital(finding.severity)} · {ruleTitle(finding.rule)} <span class="rule-code">{rules.value.get(finding.rule)?.code}</span>
        <RankBadge ranks={ranksOf(finding)} />
      </p>
      <h1 id="finding-title" ref={heading} tabIndex={-1}><Message text={actionOf(finding)} /></h1>
      {diagnosisOf(finding) && <p class="diagnosis"><Message text={diagnosisOf(finding)} /></p>}
      {finding.saving && <Gain saving={finding.saving} costNs={cost} />}
    </header>
  );
}

/** The origin of the finding, for those who want to check it. */
export function Figures({ finding }: { finding: Finding }) {
  const { cost_ns: cost, share: part } = finding;
  return (
    <>
      <dl class="worth">
        <div>
          <dt>Costs<Explained what="Costs" lines={costFormula(cost, part, finding.matches, per.value)} /></dt>
          <dd class="worth-value">{nanoseconds(cost)}<span class="per"> per {per.value}</span></dd>
          {part !== null && <dd class="worth-note">{share(part)} of the {per.value} time</dd>}
        </div>
        <div>
          <dt>Matches</dt>
          <dd class="worth-value">{count(finding.matches)}</dd>
          {per.value === 'step' && matchesText(finding.matches_per_step) && <dd class="worth-note">{matchesText(finding.matches_per_step)}</dd>}
        </div>
        <div>
          <dt>Confidence</dt>
          <dd class="worth-value">{capital(finding.confidence)}</dd>
          {finding.places.length > 0 && <dd class="worth-note">{plural(finding.places.length, 'place')} in the source</dd>}
          {finding.known_by && <dd class="worth-note">operators from the graph’s capture: {FROM_CAPTURE[finding.known_by]}</dd>}
        </div>
      </dl>
      <div class="actions">
        <Button onClick={() => go({ view: 'flame', finding: finding.id, entry: '' }, 'push')}>Show in the flame graph</Button>
        <CopyButton icon="link" label="Copy link" onCopy={copyLink} />
        <CopyButton label="Copy as Markdown" onCopy={() => copyFinding(finding)} />
        <CopyButton label="Copy for an assistant" onCopy={() => copyForAssistant(finding)} />
        <MuteButtons finding={finding} />
      </div>
    </>
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

/** The gain in one number, and its certainty. */
function Gain({ saving, costNs }: { saving: Saving; costNs: number }) {
  const now = report.value ? stepNow(report.value) : null;
  const { expected_ns: expected, speedup } = saving;
  return (
    <div class="gain">
      <p class="gain-number">
        {expected > 0 && ledger.value?.is_one_time ? <>Takes <b>{nanoseconds(expected)}</b>{now === null ? '' : ` of ${nanoseconds(now)}`} in this recording</>
          : expected > 0 ? <>Fix saves about <b>{nanoseconds(expected)}</b>{now === null ? '' : ` of ${nanoseconds(now)}`} per {per.value}{speedup !== null && speedup >= WORTH_TELLING && <>, <b>{times(speedup)}</b> speed</>}</>
          : <b>{capital(NO_SAVING)}</b>}
        <Explained what="Fix saves about" lines={savingFormula(saving, costNs, now, per.value)} />
      </p>
      <p class="gain-note">{[expected > 0 ? likelihoodText(saving) : atMost(saving), basisText(saving.basis)].filter(Boolean).join(' · ')}</p>
    </div>
  );
}
