/** The findings of both sides, by their state in the candidate. */

import type { FindingChange } from '../../api/types.gen';
import { actionOf } from '../../base/actionTitles';
import { differenceOf, FINDING_STATES, wayOf } from '../../base/compare';
import { placeText } from '../../base/places';
import { columnSigned, columnTime, plural } from '../../base/units';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { openChange, openPlace } from '../../state/compare';

export function Findings({ changes }: { changes: readonly FindingChange[] }) {
  if (changes.length === 0) return null;
  return (
    <section class="chart" aria-label="Findings">
      <div class="chart-head"><h2>Findings</h2><span class="muted">what each costs per step; open one in the run that has it</span></div>
      <div class="data-table changes" role="region" aria-label="Findings by state" tabIndex={0}>
        <table>
          <thead><tr><th scope="col">Finding</th><th scope="col" class="number">Baseline</th><th scope="col" class="number">Candidate</th><th scope="col" class="number">Difference</th></tr></thead>
          {FINDING_STATES.map((kind) => {
            const found = changes.filter(({ state }) => state === kind.state);
            return found.length > 0 && (
              <tbody key={kind.state}>
                <tr class="change-state">
                  <th scope="rowgroup" colSpan={4}><span class={`change-word ${kind.tone}`}><span aria-hidden="true">{kind.sign}</span> {kind.word}</span> <span class="muted">{plural(found.length, 'finding')}, {kind.meaning}</span></th>
                </tr>
                {found.map((change) => <Row key={change.id} change={change} />)}
              </tbody>
            );
          })}
        </table>
      </div>
    </section>
  );
}

function Row({ change }: { change: FindingChange }) {
  const [place] = change.places;
  const difference = differenceOf(change);
  const { sign, tone } = wayOf(difference, change.state === 'same' ? Infinity : 0);
  return (
    <tr>
      <th scope="row">
        <button type="button" class="change-open" onClick={() => openChange(change)}><SeverityGlyph level={change.severity} /><span><Message text={actionOf(change)} /></span></button>
        {place && <button type="button" class="change-place" title={`${place.file}:${place.line}`} onClick={() => openPlace(change, place)}>{placeText(place)} in {place.function}</button>}
        {change.reason && <span class="muted change-reason"><Message text={change.reason} /></span>}
      </th>
      <td class="number">{costText(change.base_ns)}</td>
      <td class="number">{costText(change.candidate_ns)}</td>
      <td class={`number way ${tone}`}>{sign} {columnSigned(difference)}</td>
    </tr>
  );
}

const costText = (ns: number | null): string => (ns === null ? '–' : columnTime(ns));
