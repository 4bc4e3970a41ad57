/** A flame graph: the path to the zoomed node, its bars, details of the marked one, and the same as a table. */

import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { cellsOf, heaviest, kindText, pathTo, totalsOf, type Frame, type Tree } from '../base/flame';
import { plural } from '../base/units';
import { Button } from './Button';
import { DataTable, type TableColumn } from './DataTable';
import { FlameCanvas, type Paint } from './FlameCanvas';
import type { Colours } from './timelineColours';

export interface LegendItem { label: string; colour: string }

interface Props {
  label: string;
  tree: Tree;
  /** Each node's own width. */
  own: readonly number[];
  focus: number;
  onFocus: (node: number) => void;
  lit: ReadonlySet<number> | null;
  paintOf: (frame: Frame, node: number, colours: Colours) => Paint;
  factsOf: (node: number) => string;
  columns: readonly TableColumn<number>[];
  /** Actions for the marked node. */
  actions?: (node: number) => ComponentChildren;
  legend: readonly LegendItem[];
}

export function FlameChart({ label, tree, own, focus, onFocus, lit, paintOf, factsOf, columns, actions, legend }: Props) {
  const totals = useMemo(() => totalsOf(tree.parent, own), [tree, own]);
  const cells = useMemo(() => cellsOf(tree, totals, focus), [tree, totals, focus]);
  const [marked, setMarked] = useState<number | null>(null);
  const cursor = cells.some(({ node }) => node === marked) ? marked : null;
  const shown = cursor ?? focus;
  const frameOf = (node: number): Frame => tree.frames[node] ?? { kind: 'root', name: '' };
  const nameOf = (node: number): string => frameOf(node).name;
  const out = (all: boolean): void => { if (focus > 0) onFocus(all ? 0 : tree.parent[focus] ?? 0); };
  const open = (node: number): void => {
    setMarked(node);
    if (node === focus) out(false);
    else onFocus(node);
  };
  const inside = heaviest(tree.children[focus] ?? [], totals);
  const named: TableColumn<number>[] = [
    { label: 'Name', cell: (node) => <Button kind="quiet" onClick={() => open(node)}>{nameOf(node)}</Button> },
    { label: 'Kind', cell: (node) => kindText(frameOf(node).kind) },
    ...columns,
  ];
  return (
    <>
      <nav class="flame-path" aria-label="Path">
        {pathTo(tree, focus).map((node) => (node === focus ? <b aria-current="location">{nameOf(node)}</b>
          : <span><Button kind="quiet" onClick={() => onFocus(node)}>{nameOf(node)}</Button><span aria-hidden="true"> ›</span></span>))}
      </nav>
      <FlameCanvas label={`${label}. ${nameOf(focus)}: ${factsOf(focus)}; ${plural(inside.length, 'part')} inside.`} cells={cells} nameOf={nameOf}
        paintOf={(node, colours) => paintOf(frameOf(node), node, colours)} lit={lit} cursor={cursor} onCursor={setMarked} onOpen={open} onOut={out} factsOf={factsOf} />
      <ul class="flame-legend" aria-label="Colours">
        {legend.map(({ label: text, colour }) => <li><span class="flame-swatch" style={{ background: colour }} aria-hidden="true" />{text}</li>)}
      </ul>
      <div class="flame-facts" role="status">
        <b>{nameOf(shown)}</b>
        <span class="muted">{[kindText(frameOf(shown).kind), placeOf(frameOf(shown)), factsOf(shown)].filter(Boolean).join(' · ')}</span>
        {shown !== focus && <Button kind="quiet" onClick={() => onFocus(shown)}>Zoom to it</Button>}
        {actions?.(shown)}
      </div>
      <section class="chart" aria-label={`Inside ${nameOf(focus)}`}>
        <h2>Inside {nameOf(focus)}</h2>
        {inside.length > 0 ? <DataTable label={`Parts of ${nameOf(focus)}`} columns={named} rows={inside} />
          : <p class="muted">Nothing is inside it.</p>}
      </section>
    </>
  );
}

const placeOf = ({ file = '', line = null }: Frame): string => (file ? `${file}${line === null ? '' : `:${line}`}` : '');
