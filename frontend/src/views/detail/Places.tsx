/** The places of a finding in the user's source. */

import type { Finding, Place } from '../../api/types.gen';
import { placeText } from '../../base/places';
import { count, nanoseconds } from '../../base/units';
import { linesText, PRECISION_SHORT, precisionText } from '../../base/words';
import { Button, CopyButton } from '../../components/Button';
import { OpenIn } from '../../components/OpenIn';
import { choosePlace, place, placeIndex } from '../../state/findings';
import { showSource } from '../../state/actions';
import { copy } from '../../state/clipboard';
import { openInWebview } from '../../state/host';
import { per, report } from '../../state/profile';
import { ranksOf } from '../../state/ranks';
import { editor, setEditor } from '../../state/settings';
import { useSource } from '../../state/source';
import { Callers } from './Callers';
import { Section } from './Section';
import { Snippet } from './Snippet';

export function Places({ finding }: { finding: Finding }) {
  const shown = place.value;
  if (!shown) {
    return (
      <Section title="Source">
        <p class="muted">
          The recording has no Python frame for these events, so no line is known.
          {!report.value?.recorded.includes('stacks') && <> Record with <code>with_stack=True</code>.</>}
        </p>
      </Section>
    );
  }
  const text = `${shown.file}:${shown.line}`;
  return (
    <Section title="Source" aside={(
      <div class="actions">
        <Editor at={shown} />
        <CopyButton label="Copy path" onCopy={() => copy(text, 'Path')} />
        <Button icon="file" onClick={() => showSource(shown)}>Show whole file</Button>
      </div>
    )}>
      {finding.places.length > 1 && <PlaceList places={finding.places} />}
      <p class="place-line"><b class="path">{shown.generated ? placeText(shown) : text}</b> {shown.generated ? 'in compiled code of' : 'in'} <code>{shown.function}</code></p>
      <p class={`precision ${shown.precision}`}>
        {precisionText(shown.precision, shown.ties, shown.generated)}
        {!shown.own_code && ' It lies in an installed package: no frame of your own code was recorded for it.'}
      </p>
      <Snippet finding={finding} place={shown} />
      {!ranksOf(finding) && <Callers finding={finding.id} place={placeIndex.value} />}
    </Section>
  );
}

/** Only if the server knows the path of the file. */
function Editor({ at }: { at: Place }) {
  const source = useSource(at.file);
  const path = source.kind === 'ready' ? source.answer.path : null;
  if (!path) return null;
  return <OpenIn path={path} line={at.line} editor={editor.value} onEditor={setEditor} onOpen={openInWebview} />;
}

const PlaceList = ({ places }: { places: readonly Place[] }) => (
  <div class="places" role="group" aria-label="Places of this finding">
    {places.map((each, index) => (
      <button type="button" class="place" aria-pressed={index === placeIndex.value} onClick={() => choosePlace(index)}>
        <span class="path" title={`${each.file}, ${linesText(each)}`}>{placeText(each)}{(each.ties?.length ?? 0) > 1 && '?'}</span>
        <span class="place-function" title={each.function}>{each.function}</span>
        <span class="place-precision">{(each.ties?.length ?? 0) > 1 ? linesText(each) : PRECISION_SHORT[each.precision]}</span>
        <span class="number">{count(each.matches)}×</span>
        <span class="number">{nanoseconds(each.duration_ns)}/{per.value}</span>
      </button>
    ))}
  </div>
);
