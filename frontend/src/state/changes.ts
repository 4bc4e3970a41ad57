/** The operators and kernels that changed, a page at a time. */

import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { getComparison } from '../api/client';
import type { CompareAnswer, KernelChange, OperatorChange } from '../api/types.gen';
import { sidesText, type Sides } from '../base/sides';
import { queryOf } from './compare';
import { gone } from './connection';
import { pagedTable, type PagedTable } from './paging';

export type Calls = 'operators' | 'kernels';
export type Change = OperatorChange | KernelChange;
type Page = { total: number; rows: readonly Change[] };
export type ChangeTable = PagedTable<Change, 'difference', Page>;

/** The text that is searched for as typed, and as it is asked for a moment later. */
export const searchText = signal('');
const settledText = signal('');
export const calls = signal<Calls>('operators');

const SETTLED_MS = 200;
let settling: ReturnType<typeof setTimeout> | undefined;

export function search(text: string): void {
  searchText.value = text;
  clearTimeout(settling);
  settling = setTimeout(() => { settledText.value = text.trim(); }, SETTLED_MS);
}

/** The table of a comparison, for a component; `made` changes when the comparison is another one. */
export function useChanges(now: Sides, made: CompareAnswer, of: Calls): ChangeTable {
  const text = settledText.value;
  const table = useMemo(() => pagedTable<Change, 'difference', Page>({
    ask: async ({ offset, limit }) => pageOf(await getComparison({ ...queryOf(now), ...(text && { q: text }), offset, limit }), of),
    sort: { column: 'difference', descending: true }, descends: () => true, // the server knows no other order
  }), [sidesText(now), made, text, of]);
  const offline = gone.value;
  useEffect(() => { if (!offline) table.need(0, 0); }, [table, offline]);
  return table;
}

const pageOf = (answer: CompareAnswer, of: Calls): Page => ({ total: answer[of], rows: answer.comparison[of] });
