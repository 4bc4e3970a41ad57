/** Which parts of the step became shorter or longer. */

import type { PartChange } from '../../api/types.gen';
import { changeShare, differenceOf, partName, signed, wayOf } from '../../base/compare';
import { isHost } from '../../base/lanes';
import { nanoseconds } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Diverging } from '../../components/Diverging';
import { TableTwin } from '../../components/TableTwin';

export function Breakdown({ parts }: { parts: readonly PartChange[] }) {
  const most = Math.max(0, ...parts.map((part) => Math.abs(differenceOf(part))));
  const lanes = [...new Set(parts.map(({ lane }) => lane))];
  if (parts.length === 0) return null;
  return (
    <TableTwin title="Parts of the step" note="difference of the average step, candidate less baseline"
      chart={(
        <div class="part-changes">
          {lanes.map((lane) => (
            <section key={lane} aria-label={laneName(lane)}>
              <p class="part-lane"><b>{laneName(lane)}</b><span class="part-ends muted" aria-hidden="true"><span>◂ less</span><span>more ▸</span></span></p>
              <ul>{parts.filter((part) => part.lane === lane).map((part) => <Part part={part} most={most} />)}</ul>
            </section>
          ))}
        </div>
      )}
      table={() => (
        <DataTable label="Table of the parts" rows={parts} columns={[
          { label: 'Part', cell: partName }, { label: 'Of', cell: ({ lane }) => laneName(lane) },
          { label: 'Baseline', number: true, cell: (part) => nanoseconds(part.base_ns) },
          { label: 'Candidate', number: true, cell: (part) => nanoseconds(part.candidate_ns) },
          { label: 'Difference', number: true, cell: (part) => signed(differenceOf(part)) },
          { label: 'Change', number: true, cell: changeShare },
        ]} />
      )} />
  );
}

function Part({ part, most }: { part: PartChange; most: number }) {
  const difference = differenceOf(part);
  const { sign, word, tone } = wayOf(difference);
  return (
    <li class="part-change">
      <span>{partName(part)}</span>
      <Diverging value={difference} most={most} tone={tone} />
      <b class={`number way ${tone}`}>{sign} {signed(difference)}<span class="hidden"> {word}</span></b>
      <span class="number muted">{nanoseconds(part.base_ns)} → {nanoseconds(part.candidate_ns)}</span>
    </li>
  );
}

const laneName = (lane: string): string => (isHost({ lane }) ? 'Host (CPU)' : lane);
