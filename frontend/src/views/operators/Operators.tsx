/** The operators: a table that the server groups, filters and sorts, and beside it the open row. */

import { useCallback, useEffect, useMemo, useRef } from 'preact/hooks';
import { columnsOf, filledColumns, GROUPINGS, leastWidth, sortedSecond } from '../../base/operators';
import { count, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Choice } from '../../components/Choice';
import { Failure } from '../../components/Failure';
import { Hero } from '../../components/Hero';
import { Icon } from '../../components/Icon';
import { Skeleton } from '../../components/Progress';
import { Select } from '../../components/Select';
import { ServerTable } from '../../components/ServerTable';
import { Message } from '../../components/Spans';
import { groupOperators, openOperator } from '../../state/actions';
import { useWantedFocus } from '../../state/focus';
import { announce } from '../../state/notices';
import { filter, kind, useOperator, useOperators, type Kind, type OperatorTable } from '../../state/operators';
import { report } from '../../state/profile';
import { route } from '../../state/route';
import { narrow } from '../../state/viewport';
import { Panel } from './Panel';

const KINDS: readonly { value: Kind; label: string }[] = [
  { value: 'operator', label: 'Operators' }, { value: 'annotation', label: 'Annotations' }, { value: 'runtime', label: 'Runtime calls' }, { value: '', label: 'All calls' },
];

export function Operators() {
  const { by, op } = route.value;
  const hasDevice = report.value?.recorded.includes('device') ?? false;
  const columns = useMemo(() => columnsOf(by, hasDevice), [by, hasDevice]);
  const table = useOperators(by, columns.map(({ id }) => id));
  const row = useOperator(table, by, op);
  const covered = narrow.value && row !== null;
  const total = table?.total.value ?? null;
  useEffect(() => { if (total !== null) announce(plural(total, 'row')); }, [total, by]);
  return (
    <div class="beside-panel">
      {!covered && (
        <main class="table-page" aria-labelledby="page-title">
          <div class="table-head">
            <h1 id="page-title">Operators</h1>
            <Choice label="Group by" value={by} options={GROUPINGS} onChoose={groupOperators} />
            {(by === 'name' || by === 'shape') && (
              <Select label="Show" value={kind.value} options={KINDS} onChange={(value) => { kind.value = value; }} />
            )}
            <Filter />
            <span class="muted table-note">{total !== null && `${plural(total, 'row')}${leftOutText(table?.said.value?.left_out ?? 0)}; `}times are totals over the recording</span>
          </div>
          {table && <Rows table={table} columns={columns} opened={op} />}
        </main>
      )}
      {row && <Panel row={row} by={by} hasDevice={hasDevice} />}
    </div>
  );
}

/** The server lists at most as many rows as anybody reads. */
const leftOutText = (rows: number): string => (rows > 0 ? `, ${count(rows)} with less host time left out` : '');

function Filter() {
  const input = useRef<HTMLInputElement>(null);
  useWantedFocus('filter', input);
  return (
    <label class="filter" title="Part of a name, of shapes, of a file or of a module">
      <Icon name="search" />
      <span class="hidden">Filter operators</span>
      <input ref={input} type="search" placeholder="Filter (/)" value={filter.text.value} autocomplete="off" spellcheck={false}
        onInput={(event) => filter.type(event.currentTarget.value)} />
    </label>
  );
}

const None = () => (
  <Hero title="Not in this recording">
    <p class="muted">It has no {KINDS.find(({ value }) => value === kind.value && value)?.label.toLowerCase() ?? 'calls'}.</p>
    {kind.value && <div class="actions"><Button onClick={() => { kind.value = ''; }}>Show all calls</Button></div>}
  </Hero>
);

function Rows({ table, columns, opened }: { table: OperatorTable; columns: ReturnType<typeof columnsOf>; opened: string }) {
  const said = table.said.value;
  const total = said?.total ?? 0;
  const onRange = useCallback((first: number, last: number) => { if (total > 0) table.need(first, last); }, [table, total]);
  if (table.failed.value) return <div class="pad"><Failure error={table.error.value} onRetry={table.refresh} /></div>;
  if (!said) return <Skeleton rows={8} />;
  if (said.missing !== null && total === 0) return <Hero title="Not in this recording"><p><Message text={said.missing} /></p></Hero>;
  if (total === 0) return filter.text.value ? <p class="pad muted">Nothing matches the filter{said.left_out > 0 && ' among the rows with the most host time'}.</p> : <None />;
  const sort = table.sort.value;
  const all = filledColumns(columns, said);
  const filled = narrow.value ? sortedSecond(all, sort.column) : all;
  return (
    <ServerTable label="Operators" columns={filled} least={leastWidth(filled)} total={total} row={table.row} onRange={onRange}
      sort={sort} onSort={table.sortBy} opened={opened} onOpen={(key) => openOperator(key === opened ? '' : key)} />
  );
}
