/** The muted findings and checks of this profile, how to show them again, and the place of mutes. */

import { actionOf } from '../../base/actionTitles';
import { Button } from '../../components/Button';
import { Message } from '../../components/Spans';
import { toggleMute } from '../../state/actions';
import { mutedFindings } from '../../state/findings';
import { couldKeepIn, keptIn, mutes, shareMutes } from '../../state/mutes';
import { ruleTitle } from '../../state/rules';

export function Muted() {
  const muted = mutedFindings.value;
  if (muted.length === 0) return null;
  return (
    <details class="outcome-group muted-group">
      <summary><span>Muted</span> <span class="count">{muted.length}</span></summary>
      <ul>
        {muted.map((finding) => (
          <li key={finding.id}>
            <span class="outcome-title"><Message text={actionOf(finding)} /></span>
            <span class="reason">{mutes.value.rules.includes(finding.rule) ? <>All of <Message text={ruleTitle(finding.rule)} /></> : 'This finding'}</span>
            <Button kind="quiet" icon="show" onClick={() => toggleMute(finding)}>Show again</Button>
          </li>
        ))}
      </ul>
      <Kept />
    </details>
  );
}

function Kept() {
  const offered = couldKeepIn.value;
  return (
    <div class="kept">
      <p class="muted">{keptIn.value ? <>Kept for everybody in <code>{keptIn.value}</code>.</> : 'Kept in this browser only.'}</p>
      {offered && <Button kind="quiet" onClick={() => void shareMutes()}>Keep them beside the runs</Button>}
      {offered && <p class="muted">Writes <code>{offered}</code>.</p>}
    </div>
  );
}
