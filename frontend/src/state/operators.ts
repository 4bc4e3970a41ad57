/** The operators of the profile on the screen: one table per grouping, filter and kind. */

import { effect, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { getOperators } from '../api/client';
import type { OperatorRow, OperatorsAnswer } from '../api/types.gen';
import { descendsFirst, type OperatorColumn } from '../base/operators';
import type { Grouping } from '../base/route';
import { shownReload, shownVersion } from './answers';
import { gone } from './connection';
import { pagedTable, type PagedTable, type Sorting } from './paging';
import { selectedKey } from './runs';

export type OperatorTable = PagedTable<OperatorRow, OperatorColumn, OperatorsAnswer>;
export type Kind = '' | 'operator' | 'annotation' | 'runtime';

/** The filter as typed, and as it is asked for a moment later. */
export const filterText = signal('');
const settledFilter = signal('');
export const kind = signal<Kind>('operator');

const SETTLED_MS = 200;
let settling: ReturnType<typeof setTimeout> | undefined;

export function setFilter(text: string): void {
  filterText.value = text;
  clearTimeout(settling);
  settling = setTimeout(() => { settledFilter.value = text.trim(); }, SETTLED_MS);
}

const order = signal<Sorting<OperatorColumn>>({ column: 'host_self_ns', descending: true });

/** Lines and modules hold calls of all kinds. */
const kindOf = (by: Grouping): string => (by === 'name' || by === 'shape' ? kind.value : '');

/** The table of a grouping, for a component; the order stays where the next one has that column. */
export function useOperators(by: Grouping, columns: readonly OperatorColumn[]): OperatorTable | null {
  const of = shownVersion();
  const filter = settledFilter.value;
  const only = kindOf(by);
  const reload = shownReload();
  const table = useMemo(() => {
    const key = selectedKey.peek();
    if (!key || !of) return null;
    const sort = columns.includes(order.peek().column) ? order.peek() : { column: 'host_self_ns' as const, descending: true };
    return pagedTable<OperatorRow, OperatorColumn, OperatorsAnswer>({
      ask: (slot) => getOperators({ ...key, group: by, ...slot, ...(filter && { filter }), ...(only && { kind: only }) }),
      sort, descends: descendsFirst,
    });
  }, [of, by, filter, only]);
  useEffect(() => effect(() => { if (table) order.value = table.sort.value; }), [table]);
  const offline = gone.value;
  useEffect(() => { if (!offline && reload >= 0) table?.refresh(); }, [table, offline, reload]);
  return table;
}

/** The row of a key: of the page in sight, else asked for by its key. */
export function useOperator(table: OperatorTable | null, by: Grouping, opened: string): OperatorRow | null {
  const of = shownVersion();
  const found = useMemo(() => signal<OperatorRow | null>(null), [of, by, opened]);
  const inSight = opened ? table?.said.value?.rows.find((row) => row.key === opened) ?? null : null;
  useEffect(() => {
    const key = selectedKey.peek();
    if (inSight) found.value = inSight;
    if (inSight || !key || !opened || !table?.said.peek()) return;
    getOperators({ ...key, group: by, filter: opened, offset: 0, limit: 100, sort: '-host_self_ns' })
      .then((answer) => { found.value = answer.rows.find((row) => row.key === opened) ?? found.peek(); })
      .catch(() => {}); // the table itself says that the server does not answer
  }, [inSight, opened, table?.said.value === null]);
  return inSight ?? found.value;
}
