/** The matched events of one finding, a page at a time, in the order the server gives. */

import { getEvents } from '../api/client';
import type { EventRow, EventsAnswer } from '../api/types.gen';
import type { ProfileKey } from '../base/selection';
import { pagedTable, type PagedTable, type Sorting } from './paging';

export type EventColumn = 'start' | 'duration' | 'step' | 'lane' | 'name';
export type EventSort = Sorting<EventColumn>;
export type EventTable = PagedTable<EventRow, EventColumn>;

export const eventTable = (key: ProfileKey, finding: string): EventTable => pagedTable<EventRow, EventColumn, EventsAnswer>({
  ask: (slot, given) => getEvents({ ...key, finding, ...slot }, given),
  sort: { column: 'start', descending: false },
  descends: (column) => column === 'duration',
});
