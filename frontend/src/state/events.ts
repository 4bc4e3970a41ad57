/** The matched events of one finding, a page at a time, in the order the server gives. */

import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { getEvents } from '../api/client';
import type { ErrorInfo, EventRow } from '../api/types.gen';
import type { ProfileKey } from '../base/selection';
import { faultInfo, reach } from './connection';

export type EventColumn = 'start' | 'duration' | 'step' | 'lane' | 'name';
export interface EventSort { column: EventColumn; descending: boolean }

export interface EventTable {
  /** How many there are; null before the first answer. */
  total: ReadonlySignal<number | null>;
  error: ReadonlySignal<ErrorInfo | null>;
  sort: ReadonlySignal<EventSort>;
  row: (index: number) => EventRow | null;
  /** Sees to it that these rows are there or on their way. */
  need: (first: number, last: number) => void;
  /** Sorts by a column; a second time the other way round. */
  sortBy: (column: EventColumn) => void;
}

const PAGE = 100;

export function eventTable(key: ProfileKey, finding: string): EventTable {
  const sort = signal<EventSort>({ column: 'start', descending: false });
  const pages = signal<ReadonlyMap<number, readonly EventRow[]>>(new Map());
  const total = signal<number | null>(null);
  const error = signal<ErrorInfo | null>(null);
  let asked = new Set<number>();

  async function fetchPage(page: number): Promise<void> {
    if (asked.has(page)) return;
    asked.add(page);
    const order = sort.peek();
    const mine = asked;
    try {
      const answer = await reach(getEvents({ ...key, finding, offset: page * PAGE, limit: PAGE, sort: sortText(order) }));
      if (mine !== asked) return; // sorted anew meanwhile
      total.value = answer.total;
      pages.value = new Map(pages.peek()).set(page, answer.rows);
      error.value = null;
    } catch (failure) {
      mine.delete(page);
      error.value = faultInfo(failure);
    }
  }

  return {
    sort, error,
    total: computed(() => total.value),
    row: (index) => pages.value.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null,
    need: (first, last) => {
      for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) void fetchPage(page);
    },
    sortBy: (column) => {
      const { column: before, descending } = sort.peek();
      sort.value = { column, descending: column === before ? !descending : column === 'duration' };
      asked = new Set();
      pages.value = new Map();
      void fetchPage(0);
    },
  };
}

const sortText = ({ column, descending }: EventSort): string => `${descending ? '-' : ''}${column}`;
