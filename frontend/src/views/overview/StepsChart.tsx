/** The step strip and its table. */

import type { StepItem } from '../../api/types.gen';
import { ticks } from '../../base/axis';
import { medianStep, rangeText } from '../../base/stepRange';
import { columnsOf, longest, ODDITIES, type GroupsAt } from '../../base/stepStrip';
import { columnTime, moment, nanoseconds } from '../../base/units';
import { Button } from '../../components/Button';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { StepStrip } from '../../components/StepStrip';
import { TableTwin } from '../../components/TableTwin';
import { compareSteps } from '../../state/actions';

interface Props { steps: readonly StepItem[]; groupsAt: GroupsAt; note: string; chosen: number | null; onChoose: (index: number | null) => void }

export function StepsChart({ steps, groupsAt, note, chosen, onChoose }: Props) {
  const most = longest(steps);
  const median = medianStep(steps);
  const stepText = (index: number): string => rangeText(steps, { first: index, last: index });
  const marks = ticks(most).map((ns) => ({ height: ns / most, text: ns === 0 ? '0' : nanoseconds(ns) }));
  return (
    <TableTwin title="Steps" note={note}
      aside={chosen !== null && (
        <>
          <Button onClick={() => onChoose(null)}>Show the average step</Button>
          {chosen !== median && <Button onClick={() => compareSteps(stepText(median), stepText(chosen))}>Compare with the median step</Button>}
        </>
      )}
      chart={<StepStrip columns={columnsOf(groupsAt, steps)} marks={marks} chosen={chosen === null ? null : { first: chosen, last: chosen }}
        onChoose={(range) => onChoose(range?.last ?? null)} />}
      table={() => <DataTable label="Table of the steps" columns={columns(groupsAt)} rows={steps} />} />
  );
}

/** One column per group that occurs in any step. */
function columns(groupsAt: GroupsAt): TableColumn<StepItem>[] {
  return [
    { label: 'Step', cell: (step) => step.name },
    { label: 'Start', number: true, cell: (step) => moment(step.start_ns) },
    { label: 'Duration', number: true, cell: (step) => columnTime(step.duration_ns) },
    { label: 'Odd', cell: (step) => (step.oddity ? `${ODDITIES[step.oddity].sign} ${ODDITIES[step.oddity].word}` : '') },
    ...groupsAt(null).map(({ group, label }): TableColumn<StepItem> => ({
      label, number: true,
      cell: (_, index) => columnTime(groupsAt(index).find((each) => each.group === group)?.ns ?? 0),
    })),
  ];
}
