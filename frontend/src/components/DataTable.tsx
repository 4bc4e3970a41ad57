/** A table of at most a few hundred rows, in a scrolling pane of its own. */

import type { ComponentChildren } from 'preact';

export interface TableColumn<Row> {
  label: string;
  number?: boolean;
  cell: (row: Row, index: number) => ComponentChildren;
}

interface Props<Row> { label: string; columns: readonly TableColumn<Row>[]; rows: readonly Row[] }

/** The first column names the row. */
export const DataTable = <Row,>({ label, columns, rows }: Props<Row>) => (
  <div class="data-table" role="region" aria-label={label} tabIndex={0}>
    <table>
      <thead>
        <tr>{columns.map((column) => <th scope="col" class={column.number ? 'number' : ''}>{column.label}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr>
            {columns.map((column, at) => (at === 0
              ? <th scope="row">{column.cell(row, index)}</th>
              : <td class={column.number ? 'number' : ''}>{column.cell(row, index)}</td>))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
