/** The parts of the step that became shorter or longer. */

import type { Comparison } from '../../api/types.gen';
import { changeShare, differenceOf, drawn, fromTo, wayOf, wholeOf } from '../../base/compare';
import { columnSigned, columnTime } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Diverging } from '../../components/Diverging';
import { TableTwin } from '../../components/TableTwin';

export function Breakdown({ comparison }: { comparison: Comparison }) {
  const whole = wholeOf(comparison);
  if (!whole) return null;
  const { sum, lines } = whole;
  const shown = drawn(whole);
  const most = Math.max(0, ...[...shown, sum].map((change) => Math.abs(differenceOf(change))));
  return (
    <TableTwin title="Parts of the step" note="difference of the mean step, candidate less baseline"
      chart={(
        <div class="part-changes">
          <section aria-label="Mean step">
            <p class="part-lane"><b>Mean step</b><span class="part-ends muted" aria-hidden="true"><span>◂ less</span><span>more ▸</span></span></p>
            <ul>
              {shown.map((line) => <Line {...line} most={most} slight={SLIGHT * sum.base_ns} />)}
              <Line name="All parts" {...sum} most={most} slight={SLIGHT * sum.base_ns} />
            </ul>
          </section>
        </div>
      )}
      table={() => (
        <DataTable label="Table of the parts" rows={lines} columns={[
          { label: 'Part', cell: ({ title }) => title },
          { label: 'Changed most', cell: ({ owner }) => owner || '–' },
          { label: 'Baseline', number: true, cell: (line) => columnTime(line.base_ns) },
          { label: 'Candidate', number: true, cell: (line) => columnTime(line.candidate_ns) },
          { label: 'Difference', number: true, cell: (line) => columnSigned(differenceOf(line)) },
          { label: 'Change', number: true, cell: changeShare },
        ]} />
      )} />
  );
}

const SLIGHT = 0.005; // of the step: the report also leaves out smaller ones

interface LineProps { name: string; title?: string; owner?: string; base_ns: number; candidate_ns: number; most: number; slight: number }

function Line({ name, title, owner, most, slight, ...change }: LineProps) {
  const difference = differenceOf(change);
  const { sign, word, tone } = wayOf(difference, slight);
  return (
    <li class="part-change" title={[title, owner].filter(Boolean).join(': ')}>
      <span>{name}</span>
      <Diverging value={difference} most={most} tone={tone} />
      <b class={`number way ${tone}`}>{sign} {columnSigned(difference)}<span class="hidden"> {word}</span></b>
      <span class="number muted">{fromTo(change.base_ns, change.candidate_ns)}</span>
    </li>
  );
}
