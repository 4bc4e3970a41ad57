/** Run, worker and span. Parts without a choice are hidden. */

import type { ProfileState } from '../../api/types.gen';
import { spanText } from '../../base/selection';
import { Select } from '../../components/Select';
import { chooseProfile } from '../../state/actions';
import { runs, selected } from '../../state/runs';

export function Pickers() {
  const answer = runs.value;
  const current = selected.value;
  if (!answer || !current) return null;
  const { run, profile: { worker, span } } = current;
  const profiles = answer.runs.find((each) => each.run === run)?.profiles ?? [];
  const workers = [...new Set(profiles.map((each) => each.worker))];
  const spans = profiles.filter((each) => each.worker === worker);
  return (
    <div class="pickers">
      <Select label="Run" value={run} options={answer.runs.map((each) => ({ value: each.run, label: each.run || '.' }))}
        onChange={(chosen) => chooseProfile({ run: chosen })} />
      {workers.length > 1 && (
        <Select label="Worker" value={worker} options={workers.map((each) => ({ value: each, label: each }))}
          onChange={(chosen) => chooseProfile({ run, worker: chosen })} />
      )}
      {spans.length > 1 && (
        <Select label="Span" value={span} options={spans.map((each) => ({ value: each.span, label: spanLabel(each) }))}
          onChange={(chosen) => chooseProfile({ run, worker, span: chosen })} />
      )}
    </div>
  );
}

const spanLabel = ({ span, span_index: index }: ProfileState): string =>
  (index === null ? spanText(span) : `${index} · ${spanText(span)}`);
