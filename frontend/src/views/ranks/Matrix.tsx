/** One row per rank, one column per part of the step. */

import { useState } from 'preact/hooks';
import type { RankRow, Ranks } from '../../api/types.gen';
import { medianOf, rankColumns, rankOrder, shadeOf, WORST_FIRST, type RankColumn, type RankOrder } from '../../base/rankTable';
import { ServerTable } from '../../components/ServerTable';
import { openRank } from '../../state/actions';

const [ROW_PX, MOST_ROWS, EDGES_PX, SCROLLBAR_PX] = [30, 14, 16, 18];
type Row = RankRow & { key: string };
const nothing = (): void => undefined;

export function Matrix({ ranks }: { ranks: Ranks }) {
  const [order, setOrder] = useState<RankOrder>(WORST_FIRST);
  const specs = rankColumns(ranks.rows);
  const columns = specs.map((spec) => {
    const middle = medianOf(ranks.rows.flatMap((row) => spec.value(row) ?? []));
    const whole = spec.whole?.(middle, ranks.step_ns ?? 0) ?? 0;
    return { ...spec, shade: (row: Row) => shadeOf(spec.value(row) ?? 0, middle, whole) };
  });
  const rows = rankOrder(ranks.rows, order).map((row) => ({ ...row, key: `${row.rank}` }));
  const least = specs.reduce((sum, { px }) => sum + px, EDGES_PX);
  return (
    <section class="chart" aria-label="Steps by rank">
      <div class="chart-head">
        <h2>Steps by rank</h2>
        <span class="muted">medians per step, without the warm-up; the stronger a shade, the further above the middle rank (5, 10, 20, 40 % of the step)</span>
      </div>
      <div class="rank-matrix" style={{ height: `${(Math.min(rows.length, MOST_ROWS) + 1) * ROW_PX + SCROLLBAR_PX}px` }}>
        <ServerTable<RankColumn, Row> label="Table of ranks" columns={columns} least={least} total={rows.length} row={(at) => rows[at] ?? null} onRange={nothing}
          sort={order} onSort={(column) => setOrder({ column, descending: column === order.column ? !order.descending : column !== 'rank' })}
          onOpen={(key) => { const row = rows.find((each) => each.key === key); if (row) openRank(row); }} />
      </div>
    </section>
  );
}
