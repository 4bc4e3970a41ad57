/** The kernels: the device's work by family, and a table that the server filters and sorts. */

import { useCallback, useEffect, useRef } from 'preact/hooks';
import type { KernelFamilyRow } from '../../api/types.gen';
import { columnBytesPerSecond, kernelColumns, type Family } from '../../base/kernels';
import { columnFlops, leastWidth, sortedSecond } from '../../base/operators';
import { columnShare, columnTime, count, plural } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Failure } from '../../components/Failure';
import { Hero } from '../../components/Hero';
import { Icon } from '../../components/Icon';
import { Skeleton } from '../../components/Progress';
import { Select } from '../../components/Select';
import { ServerTable } from '../../components/ServerTable';
import { Message } from '../../components/Spans';
import { copy } from '../../state/clipboard';
import { useWantedFocus } from '../../state/focus';
import { family, filter, useKernels, type KernelTable } from '../../state/kernels';
import { announce } from '../../state/notices';
import { narrow } from '../../state/viewport';

export function Kernels() {
  const table = useKernels();
  const total = table?.total.value ?? null;
  const families = table?.said.value?.families ?? [];
  useEffect(() => { if (total !== null) announce(plural(total, 'row')); }, [total]);
  return (
    <main class="table-page" aria-labelledby="page-title">
      <div class="table-head">
        <h1 id="page-title">Kernels</h1>
        {families.length > 1 && <Select<Family | ''> label="Show" value={family.value} options={choices(families)} onChange={(value) => { family.value = value; }} />}
        <Filter />
        <span class="muted table-note">{total !== null && `${plural(total, 'row')}; `}times are totals over the recording</span>
      </div>
      {families.length > 0 && <Families rows={families} />}
      {table && <Rows table={table} />}
    </main>
  );
}

const choices = (rows: readonly KernelFamilyRow[]): { value: Family | ''; label: string }[] =>
  [{ value: '', label: 'All families' }, ...rows.map((row) => ({ value: row.family, label: row.label }))];

function Filter() {
  const input = useRef<HTMLInputElement>(null);
  useWantedFocus('filter', input);
  return (
    <label class="filter" title="Part of the name of a kernel, of its operator or of its family">
      <Icon name="search" />
      <span class="hidden">Filter kernels</span>
      <input ref={input} type="search" placeholder="Filter (/)" value={filter.text.value} autocomplete="off" spellcheck={false}
        onInput={(event) => filter.type(event.currentTarget.value)} />
    </label>
  );
}

const Families = ({ rows }: { rows: readonly KernelFamilyRow[] }) => (
  <DataTable label="Families" rows={rows} columns={[
    { label: 'Family', cell: (row) => row.label },
    { label: 'Count', number: true, cell: (row) => count(row.count) },
    { label: 'Time', number: true, cell: (row) => columnTime(row.total_ns) },
    { label: 'Share', number: true, cell: (row) => columnShare(row.share) },
    { label: 'FLOP/s', number: true, cell: (row) => (row.flops_per_second === null ? '–' : columnFlops(row.flops_per_second)) },
    { label: 'B/s', number: true, cell: (row) => (row.bytes_per_second === null ? '–' : columnBytesPerSecond(row.bytes_per_second)) },
    { label: 'Roofline', number: true, cell: (row) => (row.roofline === null ? '–' : columnShare(row.roofline)) },
    { label: 'Rates known for', number: true, cell: (row) => columnShare(row.rated_share) },
  ]} />
);

function Rows({ table }: { table: KernelTable }) {
  const said = table.said.value;
  const total = said?.total ?? 0;
  const onRange = useCallback((first: number, last: number) => { if (total > 0) table.need(first, last); }, [table, total]);
  if (table.failed.value) return <div class="pad"><Failure error={table.error.value} onRetry={table.refresh} /></div>;
  if (!said) return <Skeleton rows={8} />;
  if (said.missing !== null && total === 0) return <Hero title="Not in this recording"><p><Message text={said.missing} /></p></Hero>;
  if (total === 0) return <p class="pad muted">Nothing matches the filter.</p>;
  const sort = table.sort.value;
  const all = kernelColumns(said.families).filter(({ id }) => !said.empty?.includes(id));
  const columns = narrow.value ? sortedSecond(all, sort.column) : all;
  return (
    <ServerTable label="Kernels" columns={columns} least={leastWidth(columns)} total={total} row={table.row} onRange={onRange}
      sort={sort} onSort={table.sortBy} onOpen={(key) => copyName(table, key)} />
  );
}

/** A row's name can be copied: names of kernels are longer than any column. */
function copyName(table: KernelTable, key: string): void {
  let index = 0;
  let row = table.row(index);
  while (row && row.key !== key) row = table.row(index += 1);
  if (row) void copy(row.name, 'Name');
}
