/** The result of a benchmark. */

import type { Finding, Measurement } from '../../api/types.gen';
import { dotAxis, EQUALITY, placeText, plotText, speedUpText, useText, verdictText, whenText } from '../../base/benchmarks';
import { columnTime, count, nanoseconds } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { DotPlot } from '../../components/DotPlot';
import { Message } from '../../components/Spans';
import { TableTwin } from '../../components/TableTwin';

interface Props {
  finding: Finding;
  measurement: Measurement;
  /** The recording's kind of device. */
  kind: string;
  ofEvents: boolean;
  kept: boolean;
  /** Shown beside the measurement that counts, or instead of one: it comes from another kind of device. */
  apart?: boolean;
}

export function Measured({ finding, measurement, kind, ofEvents, kept, apart = false }: Props) {
  const { on, doubts, equal, trusted, measured_at: at } = measurement;
  const inSaving = finding.measurement?.measured_at === at && (finding.saving?.basis.includes('measured') ?? false);
  return (
    <div class={`measured${apart ? ' apart' : ''}`}>
      {apart && <h3>On another kind of device ({on.kind})</h3>}
      <Figures measurement={measurement} />
      <Samples measurement={measurement} />
      <ul class="bench-facts">
        <li class={equal === false ? 'bad' : equal ? 'good' : ''}>{EQUALITY(equal)}</li>
        <li class={inSaving ? 'good' : ''}>{useText({ trusted, kind: on.kind, recordedKind: kind, ofEvents, inSaving, kept })}</li>
        {doubts.map((doubt: string) => <li class="bad"><Message text={doubt} /></li>)}
      </ul>
      <p class="bench-where muted">{placeText(on)} · {whenText(at)}</p>
    </div>
  );
}

function Figures({ measurement }: { measurement: Measurement }) {
  const { verdict, blocks, before_ns: before, after_ns: after } = measurement;
  const { factor, range } = speedUpText(measurement);
  const unclear = verdict === 'no_clear_difference';
  return (
    <dl class="worth bench-figures">
      <div class={`saves${unclear ? ' unclear' : ''}`}>
        <dt>{unclear ? 'Result' : 'Speed-up'}</dt>
        <dd class="worth-value">{unclear ? verdictText(measurement) : <>{factor}{range && <span class="per"> {range}</span>}</>}</dd>
        <dd class="worth-note">{unclear ? `${factor} ${range}` : verdictText(measurement)}, 95 % interval</dd>
      </div>
      <div><dt>Before</dt><dd class="worth-value">{nanoseconds(before)}</dd><dd class="worth-note">median of a call</dd></div>
      <div><dt>After</dt><dd class="worth-value">{nanoseconds(after)}</dd><dd class="worth-note">median of a call</dd></div>
      <div><dt>Samples</dt><dd class="worth-value">n = {count(blocks)}</dd><dd class="worth-note">pairs, taken in turns</dd></div>
    </dl>
  );
}

function Samples({ measurement }: { measurement: Measurement }) {
  const { before_ns: before, after_ns: after, before_samples_ns: befores, after_samples_ns: afters, blocks } = measurement;
  if (befores.length === 0) return null;
  const text = plotText({ ns: before, samples: befores }, { ns: after, samples: afters });
  const beyond = [befores, afters].reduce((sum, samples) => sum + dotAxis(samples, [before, after], [...befores, ...afters]).beyond, 0);
  const note = [
    befores.length < blocks ? `${befores.length} of ${count(blocks)} samples, evenly chosen` : 'a dot per sample', 'the line is the median',
    beyond > 0 && `${count(beyond)} further out, at the edge`,
  ].filter(Boolean).join('; ');
  return (
    <TableTwin title="Time of a call" level={3} note={note}
      chart={(
        <DotPlot title="Time of a call, before and after" description={text} rows={[
          { label: 'Before', kind: 'plain', medianNs: before, samplesNs: befores }, { label: 'After', kind: 'accent', medianNs: after, samplesNs: afters },
        ]} />
      )}
      table={() => (
        <DataTable label="Samples" rows={befores} columns={[
          { label: 'Sample', number: true, cell: (_, index) => count(index + 1) }, { label: 'Before', number: true, cell: (ns) => columnTime(ns) },
          { label: 'After', number: true, cell: (_, index) => columnTime(afters[index] ?? 0) },
        ]} />
      )} />
  );
}
