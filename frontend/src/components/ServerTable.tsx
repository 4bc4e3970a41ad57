/** A long table whose rows load gradually; only visible ones are drawn. Headings sort, a row's first cell opens it. */

import { ShareBar } from './ShareBar';
import { VirtualRows } from './VirtualRows';

interface Column<Id extends string, Row> { id: Id; label: string; hint: string; number: boolean; width: string; text: (row: Row) => string; shade?: (row: Row) => number; part?: (row: Row) => number }

interface Props<Id extends string, Row extends { key: string }> {
  label: string;
  columns: readonly Column<Id, Row>[];
  /** Width below which the table scrolls sideways. */
  least: number;
  total: number;
  row: (index: number) => Row | null;
  onRange: (first: number, last: number) => void;
  sort: { column: Id; descending: boolean };
  onSort: (column: Id) => void;
  /** The key of the open row; absent if rows lead elsewhere. */
  opened?: string;
  onOpen: (key: string) => void;
}

const ROW_PX = 30;

export function ServerTable<Id extends string, Row extends { key: string }>(props: Props<Id, Row>) {
  const { label, columns, least, total, row, onRange, sort, onSort, opened, onOpen } = props;
  const grid = { gridTemplateColumns: columns.map(({ width }) => width).join(' ') };
  const header = (
    <div class="server-row server-head" role="row" aria-rowindex={1} style={grid}>
      {columns.map(({ id, label: name, hint, number }) => {
        const sorted = id === sort.column;
        return (
          <span role="columnheader" class={number ? 'number' : ''} title={hint} aria-sort={sorted ? (sort.descending ? 'descending' : 'ascending') : undefined}>
            <button type="button" class="sort" onClick={() => onSort(id)}>{name}<span class="sort-sign" aria-hidden="true">{sorted ? (sort.descending ? '▾' : '▴') : ''}</span></button>
          </span>
        );
      })}
    </div>
  );
  const draw = (index: number) => {
    const each = row(index);
    const isOpen = each !== null && each.key === opened;
    return (
      <div class={`server-row${isOpen ? ' open' : ''}`} role="row" aria-rowindex={index + 2} aria-busy={each === null} style={grid}
        onClick={() => { if (each) onOpen(each.key); }}>
        {columns.map(({ text, number, shade, part }, at) => {
          const words = each ? text(each) : '';
          const shaded = each ? shade?.(each) ?? 0 : 0;
          if (at > 0 || !each) return <span role="cell" class={`${number ? 'number' : ''}${shaded > 0 ? ` shade-${shaded}` : ''}`} title={words}>{each && part ? <ShareBar share={part(each)} text={words} /> : words}</span>;
          return <span role="cell"><button type="button" class="server-open" title={words} aria-expanded={opened === undefined ? undefined : isOpen} data-key={each.key}>{words || '–'}</button></span>;
        })}
      </div>
    );
  };
  return (
    <VirtualRows class="server-table" role="table" label={label} count={total} rowHeight={ROW_PX} headerHeight={ROW_PX} width={`${least}px`}
      header={header} row={draw} onRange={onRange} order={`${sort.column} ${sort.descending}`} />
  );
}
