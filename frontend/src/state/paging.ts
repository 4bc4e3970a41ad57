/** A table that the server sorts and hands out a page at a time. */

import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { ErrorInfo } from '../api/types.gen';
import { faultInfo, reach } from './connection';

export interface Sorting<Column> { column: Column; descending: boolean }
export interface Slot { offset: number; limit: number; sort: string }
interface Answer<Row> { total: number; rows: readonly Row[] }

export interface PagedTable<Row, Column, Said extends Answer<Row> = Answer<Row>> {
  /** How many rows there are; null before the first answer. */
  total: ReadonlySignal<number | null>;
  /** The answer that came last. */
  said: ReadonlySignal<Said | null>;
  error: ReadonlySignal<ErrorInfo | null>;
  /** The last request failed, also where a bar says why. */
  failed: ReadonlySignal<boolean>;
  sort: ReadonlySignal<Sorting<Column>>;
  row: (index: number) => Row | null;
  /** Sees to it that these rows are there or on their way. */
  need: (first: number, last: number) => void;
  /** Sorts by a column; a second time the other way round. */
  sortBy: (column: Column) => void;
  /** Asks again for what is there; rows stay in sight until their answer comes. */
  refresh: () => void;
}

interface Options<Column, Said> {
  ask: (slot: Slot) => Promise<Said>;
  sort: Sorting<Column>;
  /** Whether a column is first sorted from its largest value down. */
  descends: (column: Column) => boolean;
}

const PAGE = 100;

export function pagedTable<Row, Column extends string, Said extends Answer<Row>>(options: Options<Column, Said>): PagedTable<Row, Column, Said> {
  const sort = signal(options.sort);
  const pages = signal<ReadonlyMap<number, readonly Row[]>>(new Map());
  const said = signal<Said | null>(null);
  const error = signal<ErrorInfo | null>(null);
  const failed = signal(false);
  let asked = new Set<number>();

  async function fetchPage(page: number): Promise<void> {
    if (asked.has(page)) return;
    asked.add(page);
    const mine = asked;
    try {
      const answer = await reach(options.ask({ offset: page * PAGE, limit: PAGE, sort: sortText(sort.peek()) }));
      if (mine !== asked) return; // sorted anew meanwhile
      said.value = answer;
      pages.value = new Map(pages.peek()).set(page, answer.rows);
      error.value = null;
      failed.value = false;
    } catch (failure) {
      mine.delete(page);
      if (mine !== asked) return;
      error.value = faultInfo(failure);
      failed.value = true;
    }
  }

  return {
    sort, said, error, failed,
    total: computed(() => said.value?.total ?? null),
    row: (index) => pages.value.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null,
    need: (first, last) => {
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) void fetchPage(page);
    },
    sortBy: (column) => {
      const { column: before, descending } = sort.peek();
      sort.value = { column, descending: column === before ? !descending : options.descends(column) };
      asked = new Set();
      pages.value = new Map();
      void fetchPage(0);
    },
    refresh: () => {
      const shown = [...pages.peek().keys()];
      asked = new Set();
      for (const page of shown.length > 0 ? shown : [0]) void fetchPage(page);
    },
  };
}

const sortText = <Column extends string>({ column, descending }: Sorting<Column>): string => `${descending ? '-' : ''}${column}`;
