/** The ranks that come last to the collectives, and how long the others wait there. */

import type { MeetingPlace, Ranks } from '../../api/types.gen';
import { placeText } from '../../base/places';
import { columnBytes, columnTime, count, plural } from '../../base/units';
import { DataTable, type TableColumn } from '../../components/DataTable';

const COLUMNS: readonly TableColumn<MeetingPlace>[] = [
  { label: 'Collective', cell: (place) => place.kind },
  { label: 'Group', cell: (place) => place.group || '–' },
  { label: 'Sent', number: true, cell: (place) => (place.bytes === null ? '–' : columnBytes(place.bytes)) },
  { label: 'Begun in', cell: ({ file, line }) => (file && line !== null ? placeText({ file, line }) : '–') },
  { label: 'Last most often', cell: (place) => `Rank ${place.last_rank}` },
  { label: 'So often', number: true, cell: (place) => `${count(place.last)} of ${count(place.met)}` },
  { label: 'Others wait per step', number: true, cell: (place) => columnTime(place.waited_ns) },
];

export const MeetingPlaces = ({ ranks: { places, steps } }: { ranks: Ranks }) => (
  <section class="chart" aria-label="Who comes last">
    <div class="chart-head">
      <h2>Who comes last</h2>
      <span class="muted">{places.length > 0 && `in ${plural(steps, 'step')} besides the warm-up; somebody is always last, and by chance another rank each time`}</span>
    </div>
    {places.length > 0 ? <DataTable label="Collectives" columns={COLUMNS} rows={places} />
      : <p class="muted">The recordings hold no collective that these ranks leave together, so nothing tells who waits for whom.</p>}
  </section>
);
