/** Where a finding is in the user's source. */

import type { Finding, Place } from '../../api/types.gen';
import { placeText } from '../../base/places';
import { count, nanoseconds } from '../../base/units';
import { PRECISION_SHORT, precisionText } from '../../base/words';
import { Button, CopyButton } from '../../components/Button';
import { choosePlace, place, placeIndex } from '../../state/findings';
import { showSource } from '../../state/actions';
import { copy } from '../../state/clipboard';
import { per, report } from '../../state/profile';
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
        <CopyButton label="Copy path" onCopy={() => copy(text, 'Path')} />
        <Button icon="file" onClick={() => showSource(shown)}>Show whole file</Button>
      </div>
    )}>
      {finding.places.length > 1 && <PlaceList places={finding.places} />}
      <p class="place-line"><b class="path">{text}</b> in <code>{shown.function}</code></p>
      <p class={`precision ${shown.precision}`}>
        {precisionText(shown.precision)}
        {!shown.own_code && ' It lies in an installed package: no frame of your own code was recorded for it.'}
      </p>
      <Snippet finding={finding} place={shown} />
    </Section>
  );
}

const PlaceList = ({ places }: { places: readonly Place[] }) => (
  <div class="places" role="group" aria-label="Places of this finding">
    {places.map((each, index) => (
      <button type="button" class="place" aria-pressed={index === placeIndex.value} onClick={() => choosePlace(index)}>
        <span class="path" title={each.file}>{placeText(each)}</span>
        <span class="place-function" title={each.function}>{each.function}</span>
        <span class="place-precision">{PRECISION_SHORT[each.precision]}</span>
        <span class="number">{count(each.matches)}×</span>
        <span class="number">{nanoseconds(each.duration_ns)}/{per.value}</span>
      </button>
    ))}
  </div>
);
