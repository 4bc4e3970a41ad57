/** The time by calls: modules, functions, operators, and the device work that they launch. */

import { useMemo, useRef, useState } from 'preact/hooks';
import type { Flame as FlameAnswer, FlameFrame } from '../../api/types.gen';
import { commonOf, found, heldBy, ownOf, totalsOf, treeOf, WEIGHTS, weightsOf, type Tree, type Weight } from '../../base/flame';
import { actionOf } from '../../base/actionTitles';
import { bytes, columnBytes, columnShare, columnTime, nanoseconds, partShare, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Choice } from '../../components/Choice';
import { FlameChart, type LegendItem } from '../../components/FlameChart';
import { ShareBar } from '../../components/ShareBar';
import { NotRecorded, Waiting } from '../../components/Waiting';
import type { Colours } from '../../components/timelineColours';
import type { Paint } from '../../components/FlameCanvas';
import { openFinding, showSource } from '../../state/actions';
import { flame, useAnswer } from '../../state/answers';
import { findingById } from '../../state/findings';
import { useWantedFocus } from '../../state/focus';
import { addCss } from '../../state/host';
import { per } from '../../state/profile';
import { go, route } from '../../state/route';
import flameCss from '../../styles/flame.css?inline';
import timelineCss from '../../styles/timeline.css?inline';

addCss(timelineCss);
addCss(flameCss);

export const Flame = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body flame-page">
      <h1 id="page-title">Flame graph</h1>
      <Waiting of={useAnswer(flame)}>{(answer) => <Whole answer={answer} />}</Waiting>
    </div>
  </main>
);

/** The frames of the host, by kind. `part` is a colour of the style sheet. */
const HOST: Partial<Record<FlameFrame['kind'], Sort>> = {
  module: { label: 'Module', part: 'green' }, function: { label: 'Function', part: 'red' }, operator: { label: 'Operator', part: 'sky' },
  annotation: { label: 'Annotation, runtime call', part: 'grey-dark' }, call: { label: 'Annotation, runtime call', part: 'grey-dark' },
};
const IDLE: Sort = { label: 'Idle time', part: null };

interface Sort { label: string; part: string | null }

/** What a frame is, as the legend names it: its work has the name of the account's group. Null for the root and for frames that stand for several. */
function sortOf({ entries, groups }: FlameAnswer, { kind, entry }: FlameFrame): Sort | null {
  if (kind === 'idle') return IDLE;
  const group = kind === 'others' ? null : groups.find((each) => each.group === entries[entry ?? -1]?.group);
  return group ? { label: group.label, part: group.colour } : HOST[kind] ?? null;
}

function Whole({ answer }: { answer: FlameAnswer }) {
  const { weight: wanted, entry: entryId, node: zoomed, finding: findingId } = route.value;
  const tree = useMemo(() => treeOf(answer), [answer]);
  const weights = useMemo(() => weightsOf(answer), [answer]);
  const entry = answer.entries.findIndex(({ id }) => id === entryId);
  const weight = entry >= 0 ? 'account' : weights.includes(wanted) ? wanted : weights[0] ?? 'account';
  const own = useMemo(() => ownOf(answer, weight, entry < 0 ? null : entry), [answer, weight, entry]);
  const totals = useMemo(() => totalsOf(tree.parent, own), [tree, own]);
  const [text, setText] = useState('');
  const matches = useMemo(() => found(tree, text), [tree, text]);
  const ofFinding = answer.findings[findingId] ?? [];
  const search = useRef<HTMLInputElement>(null);
  useWantedFocus('filter', search);

  if (weights.length === 0) return <NotRecorded reason="No event of the host or a device lies in the steps of this recording." />;
  const number = Number(zoomed);
  const focus = zoomed !== '' && (totals[number] ?? 0) > 0 ? number : commonOf(tree, ofFinding);
  const whole = totals[0] ?? 0;
  const perStep = (of: number): number => Math.round(of / answer.steps);
  const amount = (of: number): string => (weight === 'bytes' ? bytes : nanoseconds)(perStep(of));
  const said = WEIGHTS.find(({ id }) => id === weight);
  const finding = ofFinding.length > 0 ? findingById(findingId) : null;
  const legend = legendOf(answer, tree, totals);
  const lit = text ? matches : ofFinding.length > 0 ? new Set(ofFinding) : null;
  return (
    <>
      <div class="timeline-bar">
        {entry < 0 && <Choice label="Weight" value={weight} options={WEIGHTS.filter(({ id }) => weights.includes(id))} onChoose={(id: Weight) => go({ weight: id }, 'replace')} />}
        <label class="filter">
          <span class="hidden">Search the flame graph</span>
          <input ref={search} type="search" placeholder="Search (/)" value={text} autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <span class="muted" role="status">{text && `${plural(matches.size, 'match', 'matches')}, ${partShare(heldBy(tree, totals, matches) / Math.max(whole, 1))} of all`}</span>
      </div>
      <p class="muted">
        {entry >= 0 ? <>Only the time of “{answer.entries[entry]?.title}”. <Button kind="quiet" onClick={() => go({ entry: '', node: '' }, 'replace')}>Show all</Button></>
          : <>{said?.label}: {said?.what}, {amount(whole)} per {per.value}.</>}
        {finding && <> The events of “{actionOf(finding).replaceAll('`', '')}” are in colour. <Button kind="quiet" onClick={() => go({ finding: '', node: String(focus) }, 'replace')}>Show all in colour</Button></>}
      </p>
      <FlameChart label={`Flame graph of ${said?.label.toLowerCase()}`} tree={tree} own={own} focus={focus} onFocus={(node) => go({ node: String(node) }, 'push')} lit={lit}
        paintOf={(frame, _, colours) => paintOf(answer, frame, colours)} legend={legend}
        factsOf={(node) => `${amount(totals[node] ?? 0)} per ${per.value}, ${partShare((totals[node] ?? 0) / Math.max(whole, 1))} of all`}
        columns={[
          { label: `Per ${per.value}`, number: true, cell: (node) => (weight === 'bytes' ? columnBytes : columnTime)(perStep(totals[node] ?? 0)) },
          { label: 'Of all', cell: (node) => <ShareBar share={(totals[node] ?? 0) / Math.max(whole, 1)} text={columnShare((totals[node] ?? 0) / Math.max(whole, 1))} /> },
        ]}
        actions={(node) => <Ways answer={answer} frame={tree.frames[node]} node={node} />} />
    </>
  );
}

function paintOf(answer: FlameAnswer, frame: FlameFrame, colours: Colours): Paint {
  const sort = sortOf(answer, frame);
  if (!sort) return { fill: colours.soft, letters: colours.text };
  return sort.part === null ? { fill: colours.grey, letters: colours.onGrey } : colours.part(sort.part);
}

/** The colours of the nodes that have a bar: the host's, then the account's. */
function legendOf(answer: FlameAnswer, tree: Tree, totals: readonly number[]): LegendItem[] {
  const there = new Set(tree.frames.flatMap((frame, node) => ((totals[node] ?? 0) > 0 ? sortOf(answer, frame)?.label ?? [] : [])));
  const sorts = new Map([...Object.values(HOST), ...answer.groups.map(({ label, colour }): Sort => ({ label, part: colour })), IDLE].map((sort) => [sort.label, sort]));
  return [...sorts.values()].flatMap(({ label, part }) => (there.has(label) ? { label, colour: part === null ? 'var(--line)' : `var(--part-${part})` } : []));
}

/** From a node to its source, its operator and its findings. */
function Ways({ answer, frame, node }: { answer: FlameAnswer; frame: FlameFrame | undefined; node: number }) {
  const findings = Object.entries(answer.findings).filter(([, nodes]) => nodes.includes(node)).flatMap(([id]) => findingById(id) ?? []);
  const { file = '', line = null, kind, name } = frame ?? {};
  return (
    <>
      {file && line !== null && <Button kind="quiet" onClick={() => showSource({ file, line })}>Source</Button>}
      {kind === 'operator' && name && <Button kind="quiet" onClick={() => go({ view: 'operators', by: 'name', op: name }, 'push')}>Operator</Button>}
      {findings.map((each) => <Button kind="quiet" onClick={() => openFinding(each.id, true)}>{actionOf(each).replaceAll('`', '')}</Button>)}
    </>
  );
}
