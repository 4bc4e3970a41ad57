/** The reason for the finding: its own numbers first, then the page of its rule. */

import type { Finding, RuleSection, ThresholdInfo } from '../../api/types.gen';
import { Markdown } from '../../components/Markdown';
import { Message } from '../../components/Spans';
import { outcomes } from '../../state/findings';
import { rules } from '../../state/rules';
import { byKind } from './details';
import { Fold } from './Section';

const REASON = 'Why it is slow'; // the section of every rule's page for this
const EXAMPLE = 'Example'; // shown as before and after in the fix

export function Why({ finding }: { finding: Finding }) {
  const { sections = [], thresholds = [] } = rules.value.get(finding.rule) ?? {};
  const { notes, changes } = byKind(finding.details);
  const reason = sections.find((section) => section.heading === REASON);
  const others = sections.filter((section) => section !== reason && !(changes.length > 0 && section.heading === EXAMPLE));
  const leftOut = outcomes('found').find((outcome) => outcome.rule === finding.rule)?.reason;
  if (notes.length === 0 && sections.length === 0) return null;
  return (
    <Fold id="why" title="Why">{() => (<>
      {notes.map((note) => <p class="note"><Message text={note.text} /></p>)}
      {reason && <Markdown text={reason.text} />}
      {leftOut && <p class="muted left-out"><Message text={leftOut} /></p>}
      {others.length > 0 && <RulePage sections={others} thresholds={thresholds} />}
    </>)}</Fold>
  );
}

interface RulePageProps { sections: readonly RuleSection[]; thresholds: readonly ThresholdInfo[] }

const RulePage = ({ sections, thresholds }: RulePageProps) => (
  <details class="rule-page">
    <summary>How this check works</summary>
    {sections.map((section) => <><h3>{section.heading}</h3><Markdown text={section.text} /></>)}
    {thresholds.length > 0 && <h3>Thresholds</h3>}
    {thresholds.map(({ name, default: usual, reason }) => <p><code>{name} = {usual}</code>: <Message text={reason} />.</p>)}
  </details>
);
