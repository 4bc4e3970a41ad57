/** A table that the server sorts and returns page by page. */

import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { ErrorInfo } from '../api/types.gen';
import { gone } from './connection';
import { resource } from './resource';

export interface Sorting<Column> { column: Column; descending: boolean }
export interface Slot<Column extends string> { offset: number; limit: number; sort: SortText<Column> }
/** A column; with a `-` before it, from its largest value down. */
type SortText<Column extends string> = Column | `-${Column}`;
interface Answer<Row> { total: number; rows: readonly Row[] }

export interface PagedTable<Row, Column, Said extends Answer<Row> = Answer<Row>> {
  /** Number of rows; null before the first answer. */
  total: ReadonlySignal<number | null>;
  /** The last answer. */
  said: ReadonlySignal<Said | null>;
  error: ReadonlySignal<ErrorInfo | null>;
  /** The last request failed, even if a bar says why. */
  failed: ReadonlySignal<boolean>;
  sort: ReadonlySignal<Sorting<Column>>;
  row: (index: number) => Row | null;
  /** Requests these rows unless they are loaded or pending. */
  need: (first: number, last: number) => void;
  /** Sorts by a column; a second time in reverse. */
  sortBy: (column: Column) => void;
  /** Requests all loaded and failed pages again; the old rows stay until the new ones arrive. */
  refresh: () => void;
  /** Aborts all pending requests. */
  stop: () => void;
}

interface Options<Column extends string, Said> {
  ask: (slot: Slot<Column>, given: AbortSignal) => Promise<Said>;
  sort: Sorting<Column>;
  /** True if a column is first sorted from its largest value down. */
  descends: (column: Column) => boolean;
}

const PAGE = 100;

export function pagedTable<Row, Column extends string, Said extends Answer<Row>>(options: Options<Column, Said>): PagedTable<Row, Column, Said> {
  const sort = signal(options.sort);
  const pages = resource<readonly Row[]>({ keep: Infinity });
  const said = signal<Said | null>(null);

  const fetchPage = (page: number): Promise<boolean> => pages.ask(String(page), async (given) => {
    const answer = await options.ask({ offset: page * PAGE, limit: PAGE, sort: sortText(sort.peek()) }, given);
    if (!given.aborted) said.value = answer;
    return answer.rows;
  });
  const isThere = (page: string): boolean => pages.answers.peek().has(page) || pages.asking.peek().has(page);

  function need(first: number, last: number): void {
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) if (!isThere(String(page))) void fetchPage(page);
  }

  return {
    sort, said, need, stop: () => pages.stop(),
    total: computed(() => said.value?.total ?? null),
    failed: computed(() => pages.failures.value.size > 0),
    error: computed(() => [...pages.failures.value.values()].find((each) => each !== null) ?? null),
    row: (index) => pages.answers.value.get(String(Math.floor(index / PAGE)))?.[index % PAGE] ?? null,
    sortBy: (column) => {
      const { column: before, descending } = sort.peek();
      sort.value = { column, descending: column === before ? !descending : options.descends(column) };
      pages.stop();
      pages.forget();
      pages.forgive();
      void fetchPage(0);
    },
    refresh: () => {
      const wanted = new Set([0, ...pages.answers.peek().keys(), ...pages.failures.peek().keys()].map(Number));
      pages.forgive();
      for (const page of wanted) void fetchPage(page);
    },
  };
}

/** Requests the first rows of a table, for a component, and aborts pending requests when it leaves the screen. */
export function usePages<Row, Column>(table: PagedTable<Row, Column> | null): void {
  const offline = gone.value;
  useEffect(() => {
    if (offline || !table) return;
    if (table.failed.peek()) table.refresh();
    else table.need(0, 0);
  }, [table, offline]);
  useEffect(() => table?.stop, [table]);
}

const sortText = <Column extends string>({ column, descending }: Sorting<Column>): SortText<Column> => (descending ? `-${column}` : column);
