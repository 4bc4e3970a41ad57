/** The files with findings, and in each the lines; then the other files that the recording leads to. */

import { actionOf } from '../../base/actionTitles';
import { columnTime, nanoseconds } from '../../base/units';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { finding } from '../../state/findings';
import { per } from '../../state/profile';
import { openFile, openLine, outline, showFile, showSpot, useOtherFiles } from '../../state/outline';

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
    <OtherFiles />
  </div>
);

/** Each opens at its costliest line; the time is the line's part of an average step, with all that it calls. */
function OtherFiles() {
  const others = useOtherFiles();
  if (others.length === 0) return null;
  return (
    <div class="outline-file">
      <h2>{outline.value.length > 0 ? 'Other files' : 'Files'} <span class="count">{others.length}</span></h2>
      <ul>
        {others.map(({ file, name, line, time }) => (
          <li>
            <button type="button" class="spot other-file" title={`${file}: line ${line} takes most of its time, ${nanoseconds(time)} per ${per.value}`}
              aria-current={openFile.value?.file === file ? 'true' : undefined} onClick={() => showFile(file, line)}>
              <span class="path">{name}</span><span class="number">{columnTime(time)}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
