/**
 * Findings and parts of the step beside the timeline: one click marks a finding's events, or goes to the longest pieces
 * of a part.
 */

import { useState } from 'preact/hooks';
import { actionOf } from '../../base/actionTitles';
import { accountOf, folded } from '../../base/ledger';
import { placeText } from '../../base/places';
import { nanoseconds, partShare } from '../../base/units';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { Swatch } from '../../components/StackedBar';
import { findings } from '../../state/findings';
import { ledger } from '../../state/profile';
import { go, route } from '../../state/route';
import { showPiece } from '../../state/timeline';

export function Beside() {
  const marked = route.value.finding;
  const account = ledger.value && accountOf(ledger.value, null);
  const parts = account ? folded(account).listed : [];
  return (
    <aside class="timeline-beside" aria-label="Findings and parts of the step">
      {findings.value.length > 0 && (
        <section>
          <h2>Findings</h2>
          <ul>
            {findings.value.map((finding) => (
              <li>
                <button type="button" class="beside-row" aria-pressed={finding.id === marked}
                  onClick={() => go({ finding: finding.id === marked ? '' : finding.id, event: '', at: '' }, 'replace')}>
                  <SeverityGlyph level={finding.severity} /><span><Message text={actionOf(finding)} />{finding.places[0] && <small class="path">{placeText(finding.places[0])}</small>}</span>
                  <span class="number">{finding.saving && finding.saving.expected_ns > 0 ? nanoseconds(finding.saving.expected_ns) : ''}</span>
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      {parts.length > 0 && <section><h2>Where the time goes</h2><ul>{parts.map(({ entry, share }) => <li key={entry.id}><Part entry={entry} share={share} /></li>)}</ul></section>}
    </aside>
  );
}

type Listed = NonNullable<typeof ledger.value>['entries'][number];

/** Each click goes to the next piece, longest first. */
function Part({ entry, share }: { entry: Listed; share: number }) {
  const pieces = entry.evidence ?? [];
  const [next, setNext] = useState(0);
  const goOn = (): void => {
    const piece = pieces[next % pieces.length];
    if (piece) showPiece(piece);
    setNext(next + 1);
  };
  return (
    <button type="button" class="beside-row" disabled={pieces.length === 0} onClick={goOn}
      title={[entry.title, ...pieces.length > 0 ? [`Click to go to the longest pieces, one after the other (${pieces.length}).`] : []].join('. ')}>
      <Swatch colour={entry.colour} /><span>{entry.label}</span><span class="number">{partShare(share)}</span>
    </button>
  );
}
