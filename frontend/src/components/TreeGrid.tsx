/**
 * A tree with columns. One tab stop; screen readers get the name of the focused row, and only visible rows are drawn.
 */

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { hasChildren, startClosed, treeMove, visibleRows, type TreeRow } from '../base/moduleTree';
import { VirtualRows } from './VirtualRows';

export interface TreeColumn<Row> { label: string; hint: string; width: string; cell: (row: Row) => ComponentChildren }

interface Props<Row extends TreeRow> {
  label: string;
  rows: readonly Row[];
  /** The first one names the row. */
  columns: readonly TreeColumn<Row>[];
  /** Width below which the table scrolls sideways. */
  least: number;
  openDepth: number;
}

const ROW_PX = 30;
const INDENT_PX = 16;

export function TreeGrid<Row extends TreeRow>({ label, rows, columns, least, openDepth }: Props<Row>) {
  const [closed, setClosed] = useState<ReadonlySet<number>>(() => startClosed(rows, openDepth));
  const [focus, setFocus] = useState(0);
  useEffect(() => { setClosed(startClosed(rows, openDepth)); setFocus(0); }, [rows, openDepth]);
  const seen = useMemo(() => visibleRows(rows, closed), [rows, closed]);
  const toggle = (at: number, shut: boolean): void => {
    const next = new Set(closed);
    if (shut) next.add(at);
    else next.delete(at);
    setClosed(next);
    setFocus(at);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof HTMLElement && event.target.matches('button, a'))) return;
    const move = treeMove(rows, closed, focus, event.key);
    if (!move) return;
    event.preventDefault();
    if ('to' in move) setFocus(move.to);
    else if ('open' in move) toggle(move.open, false);
    else toggle(move.close, true);
  };
  const grid = { gridTemplateColumns: columns.map(({ width }) => width).join(' ') };
  const header = (
    <div class="server-row server-head" role="row" aria-rowindex={1} style={grid}>
      {columns.map(({ label: name, hint }, at) => <span role="columnheader" class={at > 0 ? 'number' : ''} title={hint}>{name}</span>)}
    </div>
  );
  const draw = (index: number) => {
    const at = seen[index] ?? 0;
    const row = rows[at];
    if (!row) return null;
    const inside = hasChildren(rows, at);
    const open = !closed.has(at);
    return (
      <div class={`server-row${at === focus ? ' focus' : ''}`} role="row" id={`tree-${at}`} aria-rowindex={index + 2} aria-level={row.depth + 1}
        aria-expanded={inside ? open : undefined} style={grid} onClick={() => setFocus(at)}>
        {columns.map(({ cell }, place) => (place > 0 ? <span role="gridcell" class="number">{cell(row)}</span> : (
          <span role="rowheader" class="tree-name" style={{ paddingLeft: `${row.depth * INDENT_PX}px` }}>
            <span class="tree-sign" aria-hidden="true" onClick={() => { if (inside) toggle(at, open); }}>{inside ? (open ? '▾' : '▸') : ''}</span>
            {cell(row)}
          </span>
        )))}
      </div>
    );
  };
  return (
    <VirtualRows class="server-table tree" role="treegrid" label={label} count={seen.length} rowHeight={ROW_PX} headerHeight={ROW_PX}
      width={`${least}px`} header={header} row={draw} keep={seen.indexOf(focus)} active={`tree-${focus}`} onKeyDown={onKey} />
  );
}
