/** Which parts of the step became shorter or longer. */

import type { PartChange } from '../../api/types.gen';
import { changeShare, differenceOf, fromTo, wayOf } from '../../base/compare';
import { isHost, partName } from '../../base/lanes';
import { nanoseconds, signed } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Diverging } from '../../components/Diverging';
import { TableTwin } from '../../components/TableTwin';

export function Breakdown({ parts }: { parts: readonly PartChange[] }) {
  const lanes = [...new Set(parts.map(({ lane }) => lane))].map((lane) => ({ lane, of: parts.filter((part) => part.lane === lane) }));
  const most = Math.max(0, ...lanes.flatMap(({ of }) => [...of, sumOf(of)]).map((change) => Math.abs(differenceOf(change))));
  if (parts.length === 0) return null;
  return (
    <TableTwin title="Parts of the step" note="difference of the average step, candidate less baseline"
      chart={(
        <div class="part-changes">
          {lanes.map(({ lane, of }) => (
            <section key={lane} aria-label={laneName(lane)}>
              <p class="part-lane"><b>{laneName(lane)}</b><span class="part-ends muted" aria-hidden="true"><span>◂ less</span><span>more ▸</span></span></p>
              <ul>
                {of.map((part) => <Line name={partName(part.part)} change={part} most={most} slight={SLIGHT * sumOf(of).base_ns} />)}
                <Line name="All parts" change={sumOf(of)} most={most} slight={SLIGHT * sumOf(of).base_ns} />
              </ul>
            </section>
          ))}
        </div>
      )}
      table={() => (
        <DataTable label="Table of the parts" rows={parts} columns={[
          { label: 'Part', cell: ({ part }) => partName(part) }, { label: 'Of', cell: ({ lane }) => laneName(lane) },
          { label: 'Baseline', number: true, cell: (part) => nanoseconds(part.base_ns) },
          { label: 'Candidate', number: true, cell: (part) => nanoseconds(part.candidate_ns) },
          { label: 'Difference', number: true, cell: (part) => signed(differenceOf(part)) },
          { label: 'Change', number: true, cell: changeShare },
        ]} />
      )} />
  );
}

interface Times { base_ns: number; candidate_ns: number }

const SLIGHT = 0.005; // of the step: what the report leaves out, too

const sumOf = (parts: readonly Times[]): Times => parts.reduce((sum, part) => (
  { base_ns: sum.base_ns + part.base_ns, candidate_ns: sum.candidate_ns + part.candidate_ns }), { base_ns: 0, candidate_ns: 0 });

function Line({ name, change, most, slight }: { name: string; change: Times; most: number; slight: number }) {
  const difference = differenceOf(change);
  const { sign, word, tone } = wayOf(difference, slight);
  return (
    <li class="part-change">
      <span>{name}</span>
      <Diverging value={difference} most={most} tone={tone} />
      <b class={`number way ${tone}`}>{sign} {signed(difference)}<span class="hidden"> {word}</span></b>
      <span class="number muted">{fromTo(change.base_ns, change.candidate_ns)}</span>
    </li>
  );
}

const laneName = (lane: string): string => (isHost({ lane }) ? 'Host (CPU)' : lane);
