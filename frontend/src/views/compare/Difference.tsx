/** Both recordings merged into one flame graph: callers and callees, and what became longer or shorter. */

import { useMemo, useState } from 'preact/hooks';
import type { Flame } from '../../api/types.gen';
import { wayOf } from '../../base/compare';
import { changeOf, paired, totalsOf, weightsOf, widthsOf, WEIGHTS, type Weight } from '../../base/flame';
import type { Sides } from '../../base/sides';
import { bytes, columnBytes, columnTime, nanoseconds } from '../../base/units';
import { Button } from '../../components/Button';
import { Choice } from '../../components/Choice';
import { Failure } from '../../components/Failure';
import { FlameChart } from '../../components/FlameChart';
import { Skeleton } from '../../components/Progress';
import { useFlames } from '../../state/compare';
import { addCss } from '../../state/host';
import { go, route } from '../../state/route';
import flameCss from '../../styles/flame.css?inline';
import timelineCss from '../../styles/timeline.css?inline';

addCss(timelineCss);
addCss(flameCss);

/** Requested only when it is opened. */
export function Difference({ sides }: { sides: Sides }) {
  const [open, setOpen] = useState(false);
  return (
    <section class="chart flame-page" aria-label="Flame graph of the difference">
      <div class="chart-head">
        <h2>Flame graph of the difference</h2>
        <span class="muted">by path, per step, of all recorded steps</span>
        <span class="chart-space" />
        <Button onClick={() => setOpen(!open)}>{open ? 'Hide' : 'Show'}</Button>
      </div>
      {open && <Asked sides={sides} />}
    </section>
  );
}

function Asked({ sides }: { sides: Sides }) {
  const flames = useFlames(sides);
  if (flames.kind === 'failed') return <Failure error={flames.error} onRetry={flames.again} />;
  return flames.kind === 'ready' ? <Paired base={flames.answer.base} candidate={flames.answer.candidate} named={flames.answer.named} /> : <Skeleton rows={4} />;
}

function Paired({ base, candidate, named }: { base: Flame; candidate: Flame; named: string }) {
  const both = useMemo(() => weightsOf(base).filter((id) => weightsOf(candidate).includes(id)), [base, candidate]);
  const { weight: wanted } = route.value;
  const weight = both.includes(wanted) ? wanted : both[0] ?? 'account';
  const pair = useMemo(() => paired(base, candidate, weight), [base, candidate, weight]);
  const own = useMemo(() => widthsOf(pair), [pair]);
  const [before, after] = useMemo(() => [pair.before, pair.after].map((each) => totalsOf(pair.tree.parent, each)), [pair]);
  const [node, setNode] = useState(0);
  if (both.length === 0) return <p class="muted">The recordings have no weight in common.</p>;
  const focus = node < pair.tree.parent.length ? node : 0;
  const [from, to] = [(at: number): number => Math.round(before?.[at] ?? 0), (at: number): number => Math.round(after?.[at] ?? 0)];
  const amount = weight === 'bytes' ? bytes : nanoseconds;
  const column = weight === 'bytes' ? columnBytes : columnTime;
  const difference = (at: number, text = amount): string => {
    const by = to(at) - from(at);
    return `${by > 0 ? '+' : by < 0 ? '−' : ''}${text(Math.abs(by))}`;
  };
  return (
    <>
      <Choice label="Weight" value={weight} options={WEIGHTS.filter(({ id }) => both.includes(id))} onChoose={(id: Weight) => { setNode(0); go({ weight: id }, 'replace'); }} />
      {named && <p class="muted">{named}</p>}
      <FlameChart label="Flame graph of the difference" tree={pair.tree} own={own} focus={focus} onFocus={setNode} lit={null}
        paintOf={(_, at, colours) => {
          const change = changeOf(from(at), to(at));
          return Math.abs(change) < SLIGHT ? { fill: colours.soft, letters: colours.text } : colours.differences(change);
        }}
        factsOf={(at) => `${amount(from(at))} to ${amount(to(at))} per step, ${difference(at)}`}
        columns={[
          { label: 'Baseline', number: true, cell: (at) => column(from(at)) },
          { label: 'Candidate', number: true, cell: (at) => column(to(at)) },
          { label: 'Difference', number: true, cell: (at) => <Way difference={to(at) - from(at)} text={difference(at, column)} /> },
        ]}
        legend={[{ label: 'More in the candidate', colour: 'var(--high)' }, { label: 'Less in the candidate', colour: 'var(--low)' }, { label: 'About the same', colour: 'var(--line-soft)' }]} />
      <p class="muted">A bar is as wide as the larger of both sides, so that what is new and what is gone are both seen; the stronger its colour, the larger its own change.</p>
    </>
  );
}

const SLIGHT = 0.02; // of the larger side: without colour

function Way({ difference, text }: { difference: number; text: string }) {
  const { sign, word, tone } = wayOf(difference, 0);
  return <span class={`way ${tone}`}>{sign} {text}<span class="hidden"> {word}</span></span>;
}
