/** The ranks of the run side by side: the slow ones, with what, and who waits for them. */

import type { Ranks as RanksOfRun } from '../../api/types.gen';
import { columnTime, nanoseconds, plural } from '../../base/units';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Notice } from '../../components/Notice';
import { RanksToRead } from '../../components/RanksToRead';
import { Message } from '../../components/Spans';
import { Waiting } from '../../components/Waiting';
import { rankTable, useAnswer } from '../../state/answers';
import { gathering, gatherSelected, ranksKnown, ranksPending } from '../../state/ranks';
import { Findings } from './Findings';
import { Matrix } from './Matrix';
import { MeetingPlaces } from './MeetingPlaces';

export const Ranks = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body ranks">
      <h1 id="page-title">Ranks</h1>
      <RanksToRead known={ranksKnown.value} pending={ranksPending.value} reading={gathering.value} onRead={gatherSelected} />
      <Waiting of={useAnswer(rankTable)}>
        {({ ranks }) => (ranks ? <Compared ranks={ranks} /> : <p>{ranksPending.value > 0 ? TOO_FEW_YET : NONE}</p>)}
      </Waiting>
    </div>
  </main>
);

const TOO_FEW_YET = 'Ranks stand side by side here as soon as two of them are read.';
const NONE = 'There is nothing to compare: recordings of two ranks or more are needed, and each must say which rank it is of.';

function Compared({ ranks }: { ranks: RanksOfRun }) {
  const whole = ranksPending.value === 0;
  return (
    <>
      <p class="lead">
        {whole || ranks.missing === 0 ? ranks.present : `So far ${plural(ranks.rows.length, 'rank')} of ${ranks.world_size ?? '?'}.`}
        {ranks.step_ns !== null && <> The median step of all takes <b>{nanoseconds(ranks.step_ns)}</b>.</>}
      </p>
      {whole && ranks.missing > 0 && <Notice kind="warning"><p><b>{plural(ranks.missing, 'rank is', 'ranks are')} missing:</b> a rank that is not here may be the one that all others wait for.</p></Notice>}
      {ranks.notes.map((note) => <Notice kind="warning"><p><Message text={note} /></p></Notice>)}
      <Findings ranks={ranks} />
      <Matrix ranks={ranks} />
      <Imbalances ranks={ranks} />
      <MeetingPlaces ranks={ranks} />
      <Clocks ranks={ranks} />
    </>
  );
}

function Imbalances({ ranks: { imbalances } }: { ranks: RanksOfRun }) {
  const [uneven, even] = [imbalances.filter((each) => each.notable), imbalances.filter((each) => !each.notable)];
  if (imbalances.length === 0) return null;
  return (
    <section class="chart" aria-label="Imbalance">
      <div class="chart-head"><h2>Imbalance</h2><span class="muted">the rank with the most, against the middle rank; marked from 10 % of the step, or of the memory, on</span></div>
      <ul class="imbalances">
        {uneven.map(({ text }) => <li><span class="odd-sign">▲ uneven</span> {text}</li>)}
        {even.map(({ text }) => <li class="muted">{text}</li>)}
      </ul>
    </section>
  );
}

type Row = RanksOfRun['rows'][number];

const CLOCKS: readonly TableColumn<Row>[] = [
  { label: 'Rank', cell: (row) => `Rank ${row.rank}` },
  { label: 'Worker', cell: (row) => row.worker },
  { label: 'Clock is ahead by', number: true, cell: (row) => (row.clock_ahead_ns === null ? 'not known' : columnTime(row.clock_ahead_ns)) },
  { label: 'Give or take', number: true, cell: (row) => (row.clock_error_ns === null ? '–' : columnTime(row.clock_error_ns)) },
];

const Clocks = ({ ranks: { rows } }: { ranks: RanksOfRun }) => (
  <details class="chart">
    <summary>Clocks of the ranks</summary>
    <p class="muted">Against rank {rows[0]?.rank}, by collectives that no rank leaves before all have come. Arrivals are compared by clocks that were set right in this way.</p>
    <DataTable label="Clocks" columns={CLOCKS} rows={rows} />
  </details>
);
