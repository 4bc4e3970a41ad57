/** The operators and kernels that changed, a page at a time. */

import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { getComparison } from '../api/client';
import type { CompareAnswer } from '../api/types.gen';
import type { Change } from '../base/changes';
import { sidesText, type Sides } from '../base/sides';
import { queryOf } from './compare';
import { pagedTable, usePages, type PagedTable } from './paging';
import { typedText } from './typed';

export type Calls = 'operators' | 'kernels';
type Page = { total: number; rows: readonly Change[] };
export type ChangeTable = PagedTable<Change, 'difference', Page>;

export const search = typedText();
export const calls = signal<Calls>('operators');

/** The table of a comparison, for a component; `made` changes with the comparison. */
export function useChanges(now: Sides, made: CompareAnswer, of: Calls): ChangeTable {
  const text = search.settled.value;
  const table = useMemo(() => pagedTable<Change, 'difference', Page>({
    ask: async ({ offset, limit }, given) => pageOf(await getComparison({ ...queryOf(now), ...(text && { q: text }), offset, limit }, given), of),
    sort: { column: 'difference', descending: true }, descends: () => true, // the server knows no other order
  }), [sidesText(now), made, text, of]);
  usePages(table);
  return table;
}

const pageOf = (answer: CompareAnswer, of: Calls): Page => ({ total: answer[of], rows: answer.comparison[of] });
