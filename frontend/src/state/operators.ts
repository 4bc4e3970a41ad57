/** The operators of the profile on the screen: one table per grouping, filter and kind. */

import { effect, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { getOperators } from '../api/client';
import type { OperatorRow, OperatorsAnswer } from '../api/types.gen';
import { boundingTime, descendsFirst, type OperatorColumn } from '../base/operators';
import type { Grouping } from '../base/route';
import { NO_KEY } from '../base/selection';
import { shownReload, shownVersion } from './answers';
import { pagedTable, usePages, type PagedTable, type Sorting } from './paging';
import { resource, useResource } from './resource';
import { selectedKey } from './runs';
import { typedText } from './typed';

export type OperatorTable = PagedTable<OperatorRow, OperatorColumn, OperatorsAnswer>;
export type Kind = '' | 'operator' | 'annotation' | 'runtime';

export const filter = typedText();
export const kind = signal<Kind>('operator');

/** The user's choice; before that the time that bounds the job. */
const order = signal<Sorting<OperatorColumn> | null>(null);

/** Lines and modules hold calls of all kinds. */
const kindOf = (by: Grouping): Kind => (by === 'name' || by === 'shape' ? kind.value : '');

function sortFor(columns: readonly OperatorColumn[]): Sorting<OperatorColumn> {
  const chosen = order.peek();
  return chosen && columns.includes(chosen.column) ? chosen : { column: boundingTime(columns), descending: true };
}

/** The table of a grouping, for a component; the order stays if the next one has that column. */
export function useOperators(by: Grouping, columns: readonly OperatorColumn[]): OperatorTable | null {
  const of = shownVersion();
  const text = filter.settled.value;
  const only = kindOf(by);
  const reload = shownReload();
  const table = useMemo(() => {
    const key = selectedKey.peek();
    if (!key || !of) return null;
    const sort = sortFor(columns);
    return pagedTable<OperatorRow, OperatorColumn, OperatorsAnswer>({
      ask: (slot, given) => getOperators({ ...key, group: by, ...slot, ...(text && { filter: text }), ...(only && { kind: only }) }, given),
      sort, descends: descendsFirst,
    });
  }, [of, by, text, only]);
  useEffect(() => {
    const first = table?.sort.peek();
    return effect(() => { if (table && table.sort.value !== first) order.value = table.sort.value; });
  }, [table]);
  usePages(table);
  useEffect(() => { if (reload !== null && (table?.said.peek() || table?.failed.peek())) table.refresh(); }, [reload]);
  return table;
}

const rows = resource<OperatorRow | null>({ keep: 24, once: true });

/** The row of a key: on the current page, else requested by its key. */
export function useOperator(table: OperatorTable | null, by: Grouping, opened: string): OperatorRow | null {
  const [of, key] = [shownVersion(), selectedKey.value ?? NO_KEY];
  const name = opened ? `${of} ${by} ${opened}` : '';
  const inSight = opened ? table?.said.value?.rows.find((row) => row.key === opened) ?? null : null;
  useEffect(() => { if (inSight) rows.put(name, inSight); }, [inSight, name]);
  const isAsked = !inSight && table !== null && table.said.value !== null;
  useResource(rows, isAsked ? name : '', async (given) => {
    const answer = await getOperators({ ...key, group: by, filter: opened, offset: 0, limit: 100, sort: '-host_self_ns' }, given);
    return answer.rows.find((row) => row.key === opened) ?? null;
  });
  return inSight ?? rows.answers.value.get(name) ?? null;
}
