/** The evidence: every matched event, paged and sorted by the server. */

import { useCallback, useEffect, useMemo, useState } from 'preact/hooks';
import type { EventRow, Finding } from '../../api/types.gen';
import { fileName } from '../../base/places';
import type { ProfileKey } from '../../base/selection';
import { columnTime, count, moment, nanoseconds, plural } from '../../base/units';
import { chunk, useChunk } from '../../components/chunk';
import { Failure } from '../../components/Failure';
import { MissingChunk } from '../../components/Later';
import { VirtualRows } from '../../components/VirtualRows';
import { ranksOf } from '../../state/ranks';
import { eventTable, type EventColumn, type EventSort, type EventTable } from '../../state/events';
import { announce } from '../../state/notices';
import { usePages } from '../../state/paging';
import { go, route } from '../../state/route';
import { Section } from './Section';

const ROW_PX = 28;
const MOST_ROWS_IN_SIGHT = 12;

interface Column { id: EventColumn | null; label: string; number: boolean; text: (row: EventRow) => string }

const COLUMNS: readonly Column[] = [
  { id: 'start', label: 'Start', number: true, text: (row) => moment(row.start_ns) },
  { id: 'duration', label: 'Duration', number: true, text: (row) => columnTime(row.duration_ns) },
  { id: 'step', label: 'Step', number: false, text: (row) => row.step ?? '–' },
  { id: 'lane', label: 'Thread or stream', number: false, text: (row) => row.lane },
  { id: 'name', label: 'Event', number: false, text: (row) => row.name },
  { id: null, label: 'Shapes', number: false, text: (row) => row.shapes },
  { id: null, label: 'Place', number: false, text: (row) => fileName(row.place) },
];

/** Findings about several ranks have no events of a single rank. */
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
  usePages(table);
  const total = table.total.value;
  const error = table.error.value;
  const chosen = useChosen(table);
  return (
    <>
      <Section title="Timeline" aside={<span class="muted">{chosen.text}</span>}>
        <Strip finding={finding} shown={chosen.event} onOccurrence={chosen.move} />
      </Section>
      <Section title="Evidence" aside={<span class="muted">{count(total ?? finding.matches)} matched events</span>}>
        {error ? <Failure error={error} onRetry={table.refresh} /> : <Rows table={table} total={total ?? 0} chosen={chosen} />}
      </Section>
    </>
  );
}

const STRIP = chunk(() => import('./Strip'));

/** The canvas is a separate chunk. */
function Strip(props: { finding: Finding; shown: string; onOccurrence: (by: 1 | -1) => void }) {
  const strip = useChunk(STRIP);
  if (strip === 'missing') return <MissingChunk />;
  return strip && <strip.Strip {...props} />;
}

interface Chosen {
  /** Id of the marked event, in the table and on the timeline: that of the address, or the first one. */
  event: string;
  /** Its row, -1 if unknown. */
  index: number;
  text: string;
  move: (by: 1 | -1) => void;
  choose: (index: number) => void;
}

const MOST_LOOKED_AT = 1000;

/** The selected row. A row that is not loaded yet is selected once it is. */
function useChosen(table: EventTable): Chosen {
  const [wanted, setWanted] = useState(-1);
  const total = table.total.value ?? 0;
  const row = wanted >= 0 ? table.row(wanted) : null;
  const event = route.value.event || String(table.row(0)?.id ?? '');
  const index = String(row?.id) === event ? wanted : indexOf(table, event, Math.min(total, MOST_LOOKED_AT));
  useEffect(() => {
    if (!row || String(row.id) === route.peek().event) return;
    go({ event: String(row.id) }, 'replace');
    announce(`Event ${count(wanted + 1)} of ${count(total)}: ${row.name}, ${nanoseconds(row.duration_ns)}, starts at ${moment(row.start_ns)}`);
  }, [wanted, row?.id]);
  const choose = (to: number): void => {
    const at = Math.min(Math.max(to, 0), total - 1);
    if (at < 0) return;
    table.need(at, at);
    setWanted(at);
    const known = table.row(at);
    if (at === wanted && known) go({ event: String(known.id) }, 'replace'); // another one was marked on the timeline
  };
  const text = index >= 0 && total > 0 ? `event ${count(index + 1)} of ${count(total)}` : '';
  return { event, index, text, choose, move: (by) => choose(index + by) };
}

function indexOf(table: EventTable, event: string, most: number): number {
  for (let at = 0; at < most; at += 1) if (String(table.row(at)?.id) === event) return at;
  return -1;
}

const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, ArrowUp: -1, ']': 1, '[': -1 };

function Rows({ table, total, chosen }: { table: EventTable; total: number; chosen: Chosen }) {
  const onKey = (event: KeyboardEvent): void => {
    const by = event.target === event.currentTarget ? STEPS[event.key] : undefined;
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    chosen.move(by);
  };
  const onRange = useCallback((first: number, last: number) => { if (total > 0) table.need(first, last); }, [table, total]);
  const inSight = Math.min(Math.max(total, 1), MOST_ROWS_IN_SIGHT) + 1;
  return (
    <div class="events" style={{ height: `${inSight * ROW_PX + 2}px` }}>
      <VirtualRows class="event-table" role="table" label="Matched events" count={total} rowHeight={ROW_PX} headerHeight={ROW_PX}
        width="880px" header={<Header sort={table.sort.value} onSort={table.sortBy} />} onRange={onRange} order={JSON.stringify(table.sort.value)} keep={chosen.index} onKeyDown={onKey}
        row={(index) => <Row row={table.row(index)} number={index + 2} isChosen={index === chosen.index} onChoose={() => chosen.choose(index)} />} />
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

const Row = ({ row, number, isChosen, onChoose }: { row: EventRow | null; number: number; isChosen: boolean; onChoose: () => void }) => (
  <div class="event-row" role="row" aria-rowindex={number} aria-busy={row === null} aria-current={isChosen ? 'true' : undefined} onClick={onChoose}>
    {COLUMNS.map((column) => {
      const text = row ? column.text(row) : '';
      return <span role="cell" class={column.number ? 'number' : ''} title={text}>{text}</span>;
    })}
  </div>
);
