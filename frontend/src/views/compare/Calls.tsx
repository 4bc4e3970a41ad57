/** The operators and kernels that changed: searched and paged by the server, largest difference first. */

import { useCallback, useMemo } from 'preact/hooks';
import type { CompareAnswer } from '../../api/types.gen';
import { changeColumns, type Change, type ChangeColumn } from '../../base/changes';
import { leastWidth } from '../../base/operators';
import type { Sides } from '../../base/sides';
import { count, plural } from '../../base/units';
import { Choice } from '../../components/Choice';
import { Failure } from '../../components/Failure';
import { Icon } from '../../components/Icon';
import { VirtualRows } from '../../components/VirtualRows';
import { calls, search, useChanges, type Calls as Kind, type ChangeTable } from '../../state/changes';

const ROW_PX = 30;
const MOST_ROWS_IN_SIGHT = 14;
const KINDS: readonly { id: Kind; label: string }[] = [{ id: 'operators', label: 'Operators' }, { id: 'kernels', label: 'Kernels' }];

interface Props { sides: Sides; answer: CompareAnswer }

export const Calls = ({ sides, answer }: Props) => (answer.operators + answer.kernels > 0 ? <Table sides={sides} answer={answer} /> : null);

function Table({ sides, answer }: Props) {
  const of = answer.kernels > 0 ? calls.value : 'operators';
  const table = useChanges(sides, answer, of);
  const total = table.total.value;
  return (
    <section class="chart" aria-label="Operators and kernels">
      <div class="chart-head">
        <h2>{of === 'operators' ? 'Operators' : 'Kernels'}</h2>
        <span class="muted">{of === 'operators' ? 'self time' : 'time'} per step; {total === null ? '…' : plural(total, 'row')} of {count(answer[of])}, largest difference first</span>
        <span class="chart-space" />
        {answer.kernels > 0 && <Choice label="Show" value={of} options={KINDS} onChoose={(kind) => { calls.value = kind; }} />}
        <label class="filter" title="Part of a name or of shapes">
          <Icon name="search" />
          <span class="hidden">Search operators and kernels</span>
          <input type="search" placeholder="Search" value={search.text.value} autocomplete="off" spellcheck={false} onInput={(event) => search.type(event.currentTarget.value)} />
        </label>
      </div>
      <Rows table={table} of={of} />
    </section>
  );
}

function Rows({ table, of }: { table: ChangeTable; of: Kind }) {
  const said = table.said.value;
  const total = said?.total ?? 0;
  const columns = useMemo(() => changeColumns(said?.rows ?? []), [said]);
  const onRange = useCallback((first: number, last: number) => { if (total > 0) table.need(first, last); }, [table, total]);
  const grid = { gridTemplateColumns: columns.map(({ width }) => width).join(' ') };
  if (table.failed.value) return <Failure error={table.error.value} onRetry={table.refresh} />;
  if (said && total === 0) return <p class="muted">{search.text.value ? 'Nothing matches the search.' : 'Nothing changed.'}</p>;
  const header = (
    <div class="server-row server-head" role="row" aria-rowindex={1} style={grid}>
      {columns.map(({ label, number }) => <span role="columnheader" class={number ? 'number' : ''}>{label}</span>)}
    </div>
  );
  return (
    <div class="change-calls" style={{ height: `${(Math.min(Math.max(total, 1), MOST_ROWS_IN_SIGHT) + 1) * ROW_PX + 2}px` }}>
      <VirtualRows class="server-table" role="table" label={of === 'operators' ? 'Operators' : 'Kernels'} count={total} rowHeight={ROW_PX} headerHeight={ROW_PX}
        width={`${leastWidth(columns)}px`} header={header} onRange={onRange} order={of}
        row={(index) => <Row columns={columns} row={table.row(index)} number={index + 2} grid={grid} />} />
    </div>
  );
}

interface RowProps { columns: readonly ChangeColumn[]; row: Change | null; number: number; grid: { gridTemplateColumns: string } }

const Row = ({ columns, row, number: at, grid }: RowProps) => (
  <div class="server-row" role="row" aria-rowindex={at} aria-busy={row === null} style={grid}>
    {columns.map(({ number, text, tone }) => {
      const words = row ? text(row) : '';
      return <span role="cell" class={`${number ? 'number' : ''}${row && tone ? ` way ${tone(row)}` : ''}`} title={words}>{words}</span>;
    })}
  </div>
);
