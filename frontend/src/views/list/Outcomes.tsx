/** Checks without a finding, and why. */

import type { Outcome } from '../../api/types.gen';
import { Message } from '../../components/Spans';
import { findings, outcomes } from '../../state/findings';
import { runOutcomes } from '../../state/ranks';
import { rules, ruleTitle } from '../../state/rules';

export function Outcomes() {
  const nothingFound = findings.value.length === 0;
  return (
    <div class="outcomes">
      <Group title="Failed checks" kind="failed" outcomes={outcomes('failed')} open={false} />
      <Group title="Passed checks" kind="clean" outcomes={outcomes('clean')} open={nothingFound} />
      <Group title="Not checked" kind="not_checked" outcomes={outcomes('not_checked')} open={false} />
    </div>
  );
}

interface GroupProps { title: string; kind: Outcome['status']; outcomes: readonly Outcome[]; open: boolean }

const SIGNS: Record<Outcome['status'], string> = { clean: '✓', not_checked: '–', failed: '✕', found: '' };

function Group({ title, kind, outcomes: group, open }: GroupProps) {
  if (group.length === 0) return null;
  const ofRun = group.filter((outcome) => runOutcomes.value.includes(outcome)).length; // an exported page counts these apart
  return (
    <details class={`outcome-group ${kind}`} open={open}>
      <summary><span>{title}</span> <span class="count">{group.length}</span>{ofRun > 0 && <span class="muted"> {ofRun === group.length ? 'about all ranks together' : `${ofRun} of them about all ranks together`}</span>}</summary>
      {kind === 'clean' && <p class="outcome-note muted">Looked for, and not found or not worth a finding:</p>}
      <ul>
        {group.map(({ rule, reason }) => (
          <li>
            <span class="sign" aria-hidden="true">{SIGNS[kind]}</span>
            <span class="outcome-title"><Message text={ruleTitle(rule)} /> <span class="rule-code">{rules.value.get(rule)?.code}</span></span>
            {reason && <span class="reason"><Message text={reason} /></span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
