/** The files with findings, and in each the lines. */

import { actionOf } from '../../base/actionTitles';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { openFile, openLine, outline, showSpot } from '../../state/outline';
import { finding } from '../../state/findings';

export const Outline = () => (
  <div class="list">
    {outline.value.map(({ file, name, spots }) => (
      <div class="outline-file">
        <h2 class="path" title={file}>{name} <span class="count">{spots.length}</span></h2>
        <ul>
          {spots.map((spot) => (
            <li>
              <button type="button" class="spot" onClick={() => showSpot(spot)} aria-current={openFile.value?.file === file
                && openLine.value === spot.place.line && finding.value?.id === spot.finding.id ? 'true' : undefined}>
                <span class="number">{spot.place.line}</span>
                <SeverityGlyph level={spot.finding.severity} />
                <span class="spot-title"><Message text={actionOf(spot.finding)} /></span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    ))}
  </div>
);
