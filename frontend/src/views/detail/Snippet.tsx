/** The lines around a place. */

import type { Finding, Place } from '../../api/types.gen';
import { fileName, marksAt } from '../../base/places';
import { plainLines } from '../../base/tokens';
import { nanoseconds } from '../../base/units';
import { Code, type Mark } from '../../components/Code';
import { Failure } from '../../components/Failure';
import { Notice } from '../../components/Notice';
import { Message } from '../../components/Spans';
import { per } from '../../state/profile';
import { useSource } from '../../state/source';

const AROUND = 12;

interface Props { finding: Finding; place: Place }

export function Snippet({ finding, place }: Props) {
  const source = useSource(place.file);
  switch (source.kind) {
    case 'loading': return <div class="code-wait" aria-hidden="true" />;
    case 'failed': return <Failure error={source.error} onRetry={source.again} />;
    case 'missing': return <Notice kind="info"><p><Message text={source.reason} /></p></Notice>;
    case 'ready': {
      const first = Math.max(1, place.line - AROUND);
      const last = Math.min(source.lines.length, Math.max(place.line, place.end_line) + AROUND);
      return (
        <>
          {source.answer.changed && <Notice kind="warning"><p>The file is newer than the recording: the marked line may have moved.</p></Notice>}
          <Code label={`${fileName(place.file)}, lines ${first} to ${last}`} lines={source.lines.slice(first - 1, last)}
            first={first} marks={marksOf(finding, place)} />
        </>
      );
    }
    default: return source satisfies never;
  }
}

/** The line with its neighbours; without the file, the text of the line from the report. */
export function Line({ finding, place }: Props) {
  const source = useSource(place.file);
  const text = place.text ?? '';
  if (source.kind !== 'ready') return text ? <Code label="The line" lines={plainLines([text])} first={place.line} /> : null;
  const first = Math.max(1, place.line - 1);
  return <Code label="The line and its neighbours" lines={source.lines.slice(first - 1, place.line + 1)} first={first} marks={marksOf(finding, place)} />;
}

const marksOf = (finding: Finding, current: Place): Mark[] =>
  finding.places.filter((each) => each.file === current.file).flatMap((each) => marksAt(each).map((mark) => ({
    ...mark, note: `${nanoseconds(each.duration_ns)}/${per.value}`, current: each === current,
  })));
