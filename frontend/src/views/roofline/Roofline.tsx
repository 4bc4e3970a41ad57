/** Operators and kernels relative to their device's limits, and whether computing or moving bounds them. */

import { useMemo, useState } from 'preact/hooks';
import type { Roofline as RooflineAnswer } from '../../api/types.gen';
import { actionOf } from '../../base/actionTitles';
import { bytesPerSecond } from '../../base/kernels';
import { columnFlops, flopsText } from '../../base/operators';
import { intensityOf, plotOf, type Dot } from '../../base/roofline';
import { columnShare, columnTime, nanoseconds, partShare, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Choice } from '../../components/Choice';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Notice } from '../../components/Notice';
import { RooflinePlot } from '../../components/RooflinePlot';
import { ShareBar } from '../../components/ShareBar';
import { NotRecorded, Waiting } from '../../components/Waiting';
import { openFinding } from '../../state/actions';
import { roofline, useAnswer } from '../../state/answers';
import { findingById } from '../../state/findings';
import { addCss } from '../../state/host';
import { go } from '../../state/route';
import css from '../../styles/roofline.css?inline';

addCss(css);

export const Roofline = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body roofline-page">
      <h1 id="page-title">Roofline</h1>
      <Waiting of={useAnswer(roofline)}>
        {(answer) => (answer.dots.length > 0 ? <Whole answer={answer} /> : <NotRecorded reason={answer.missing ?? 'No work of known size was recorded.'} />)}
      </Waiting>
    </div>
  </main>
);

const KINDS = [{ id: 'operator', label: 'Operators' }, { id: 'kernel', label: 'Kernels' }] as const;
const BOUNDS = { compute: 'computing', memory: 'memory' } as const;

function Whole({ answer }: { answer: RooflineAnswer }) {
  const { device, bytes_per_second: moved, ceilings, source } = answer;
  const kinds = KINDS.filter(({ id }) => answer.dots.some(({ kind }) => kind === id));
  const [wanted, setWanted] = useState<Dot['kind']>('operator');
  const kind = kinds.some(({ id }) => id === wanted) ? wanted : kinds[0]?.id ?? 'operator';
  const dots = useMemo(() => answer.dots.filter((dot) => dot.kind === kind), [answer, kind]);
  const plot = useMemo(() => plotOf(answer, dots), [answer, dots]);
  const [chosen, setChosen] = useState<Dot | null>(null);
  const shown = chosen && dots.includes(chosen) ? chosen : null;
  const limits = moved === null ? '' : `${device} (${source}): ${[...ceilings.map(({ name, flops_per_second: most }) => `${flopsText(most)} in ${name}`), `${bytesPerSecond(moved)} to its memory`].join(', ')}`;
  return (
    <>
      {kinds.length > 1 && <Choice label="Dots" value={kind} options={kinds} onChoose={setWanted} />}
      <p class="muted">{plural(dots.length, kind)} of known work{limits && `; ${limits}`}. The larger a dot, the more device time it takes.</p>
      {moved === null && (
        <Notice kind="info">
          <p>The peak rates of {device ? `“${device}”` : 'this device'} are not known, so there is no limit to compare with. Give them in a <code>tb-tidy.toml</code>:</p>
          <pre>{`[devices."${device || 'name'}"]\ngigabytes-per-second = …\nfloat32 = …\nbfloat16 = …`}</pre>
        </Notice>
      )}
      <RooflinePlot plot={plot} label={`Roofline of ${plural(dots.length, kind)}; the table below has each of them`} chosen={shown} onChoose={setChosen} textOf={textOf} rateText={flopsText} />
      {moved !== null && (
        <ul class="roofline-legend" aria-label="Colours">
          <li><span class="roofline-key compute" aria-hidden="true" />bound by computing</li>
          <li><span class="roofline-key memory" aria-hidden="true" />bound by memory</li>
          <li><span class="roofline-key unknown" aria-hidden="true" />limit not known</li>
        </ul>
      )}
      <div class="roofline-facts" role="status">{shown ? <Facts dot={shown} /> : <span class="muted">Click a dot, or a name below, to see what is known of it.</span>}</div>
      <DataTable label={`Roofline of ${kind}s`} columns={columnsOf(dots, setChosen, kind)} rows={dots} />
    </>
  );
}

const textOf = (dot: Dot): string =>
  [dot.name, dot.detail, nanoseconds(dot.total_ns), flopsText(dot.flops_per_second), dot.roofline === null ? '' : `${partShare(dot.roofline)} of its limit`].filter(Boolean).join(' · ');

function Facts({ dot }: { dot: Dot }) {
  const findings = dot.findings.flatMap((id) => findingById(id) ?? []);
  return (
    <>
      <b>{dot.name}</b> <span class="muted">{textOf(dot).slice(dot.name.length + 3)}{dot.bound && `, bound by ${BOUNDS[dot.bound]}`}</span>
      {dot.kind === 'operator' && <Button kind="quiet" onClick={() => go({ view: 'operators', by: 'shape', op: dot.key }, 'push')}>Operator and line</Button>}
      {dot.kind === 'kernel' && dot.detail && <Button kind="quiet" onClick={() => go({ view: 'operators', by: 'name', op: dot.detail }, 'push')}>Operator</Button>}
      {findings.map((finding) => <Button kind="quiet" onClick={() => openFinding(finding.id, true)}>{actionOf(finding).replaceAll('`', '')}</Button>)}
    </>
  );
}

/** Columns in which no dot has a figure are left out. */
function columnsOf(dots: readonly Dot[], onChoose: (dot: Dot) => void, kind: Dot['kind']): TableColumn<Dot>[] {
  return [
    { label: kind === 'operator' ? 'Operator' : 'Kernel', cell: (dot) => <Button kind="quiet" onClick={() => onChoose(dot)}>{dot.name}</Button> },
    ...(dots.some(({ detail }) => detail) ? [{ label: kind === 'operator' ? 'Input shapes' : 'Operator', cell: (dot: Dot) => dot.detail || '–' }] : []),
    { label: 'Device time', number: true, cell: (dot) => columnTime(dot.total_ns) },
    { label: 'Of the device', cell: (dot) => <ShareBar share={dot.share} text={columnShare(dot.share)} /> },
    { label: 'FLOP/s', number: true, cell: (dot) => columnFlops(dot.flops_per_second) },
    { label: 'FLOP per byte', number: true, cell: (dot) => Number(intensityOf(dot).toPrecision(3)).toLocaleString('en-US') },
    ...(dots.some(({ roofline: reached }) => reached !== null) ? [
      { label: 'Of its limit', number: true, cell: (dot: Dot) => (dot.roofline === null ? '–' : columnShare(dot.roofline)) },
      { label: 'Bound by', cell: (dot: Dot) => (dot.bound ? BOUNDS[dot.bound] : '–') },
    ] : []),
  ];
}
