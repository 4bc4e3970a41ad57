/** The proof: every matched event, paged and sorted by the server. */

import { useCallback, useEffect, useMemo } from 'preact/hooks';
import type { EventRow, Finding } from '../../api/types.gen';
import { fileName } from '../../base/places';
import type { ProfileKey } from '../../base/selection';
import { count, moment, nanoseconds, plural } from '../../base/units';
import { Failure } from '../../components/Failure';
import { VirtualRows } from '../../components/VirtualRows';
import { gone } from '../../state/connection';
import { ranksOf } from '../../state/ranks';
import { eventTable, type EventColumn, type EventSort, type EventTable } from '../../state/events';
import { Section } from './Section';

const ROW_PX = 28;
const MOST_ROWS_IN_SIGHT = 12;

interface Column { id: EventColumn | null; label: string; number: boolean; text: (row: EventRow) => string }

const COLUMNS: readonly Column[] = [
  { id: 'start', label: 'Start', number: true, text: (row) => moment(row.start_ns) },
  { id: 'duration', label: 'Duration', number: true, text: (row) => nanoseconds(row.duration_ns) },
  { id: 'step', label: 'Step', number: false, text: (row) => row.step ?? '–' },
  { id: 'lane', label: 'Thread or stream', number: false, text: (row) => row.lane },
  { id: 'name', label: 'Event', number: false, text: (row) => row.name },
  { id: null, label: 'Shapes', number: false, text: (row) => row.shapes },
  { id: null, label: 'Place', number: false, text: (row) => fileName(row.place) },
];

/** What ranks show together is in no rank's events alone. */
export const NoEvents = ({ finding }: { finding: Finding }) => (
  <Section title="Evidence" aside={<span class="muted">{ranksOf(finding)}</span>}>
    <p class="muted">
      Found by comparing the recordings of several ranks, {plural(finding.matches, 'time')}. No single event of this profile
      shows it, so there is no table of events here.
    </p>
  </Section>
);

export function Events({ profile, finding }: { profile: ProfileKey; finding: Finding }) {
  const table = useMemo(() => eventTable(profile, finding.id), [profile, finding.id]);
  const offline = gone.value;
  useEffect(() => { if (!offline) table.need(0, 0); }, [table, offline]);
  const total = table.total.value;
  const error = table.error.value;
  return (
    <Section title="Evidence" aside={<span class="muted">{count(total ?? finding.matches)} matched events</span>}>
      {error ? <Failure error={error} onRetry={() => table.need(0, 0)} /> : <Rows table={table} total={total ?? 0} />}
    </Section>
  );
}

function Rows({ table, total }: { table: EventTable; total: number }) {
  const onRange = useCallback((first: number, last: number) => { if (total > 0) table.need(first, last); }, [table, total]);
  const inSight = Math.min(Math.max(total, 1), MOST_ROWS_IN_SIGHT) + 1;
  return (
    <div class="events" style={{ height: `${inSight * ROW_PX + 2}px` }}>
      <VirtualRows class="event-table" role="table" label="Matched events" count={total} rowHeight={ROW_PX} headerHeight={ROW_PX}
        width="880px" header={<Header sort={table.sort.value} onSort={table.sortBy} />} onRange={onRange} order={JSON.stringify(table.sort.value)}
        row={(index) => <Row row={table.row(index)} number={index + 2} />} />
    </div>
  );
}

function Header({ sort, onSort }: { sort: EventSort; onSort: (column: EventColumn) => void }) {
  return (
    <div class="event-row event-head" role="row" aria-rowindex={1}>
      {COLUMNS.map(({ id, label, number }) => {
        const sorted = id !== null && id === sort.column;
        return (
          <span role="columnheader" class={number ? 'number' : ''} aria-sort={sorted ? (sort.descending ? 'descending' : 'ascending') : undefined}>
            {id === null ? label : (
              <button type="button" class="sort" onClick={() => onSort(id)}>{label}<span class="sort-sign" aria-hidden="true">{sorted ? (sort.descending ? '▾' : '▴') : ''}</span></button>
            )}
          </span>
        );
      })}
    </div>
  );
}

const Row = ({ row, number }: { row: EventRow | null; number: number }) => (
  <div class="event-row" role="row" aria-rowindex={number} aria-busy={row === null}>
    {COLUMNS.map((column) => {
      const text = row ? column.text(row) : '';
      return <span role="cell" class={column.number ? 'number' : ''} title={text}>{text}</span>;
    })}
  </div>
);
