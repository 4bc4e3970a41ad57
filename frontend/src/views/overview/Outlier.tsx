/** The unusual properties of the selected step. */

import type { OutlierCause, ProfileReport } from '../../api/types.gen';
import { causeName, CAUSES } from '../../base/outliers';
import { columnSigned, columnTime, count } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { Message } from '../../components/Spans';

export function Outlier({ report: { outliers = [] }, step }: { report: ProfileReport; step: number | null }) {
  const found = outliers.find((each) => each.step === step);
  if (!found) return null;
  return (
    <section class="chart" aria-label={`Why ${found.name} is an outlier`}>
      <div class="chart-head"><h2>Why {found.name} is an outlier</h2></div>
      <p class="lead"><Message text={found.text} /></p>
      {found.causes.length > 0 && (
        <>
          <DataTable label="What it holds that the median step does not" rows={found.causes} columns={[
            { label: 'What', cell: (cause) => <>{causeName(cause)}{cause.shapes && <span class="muted"> {cause.shapes}</span>}</> },
            { label: 'Kind', cell: (cause) => CAUSES[cause.kind] },
            { label: 'This step', number: true, cell: (cause) => columnTime(cause.time_ns) },
            { label: 'Usually', number: true, cell: (cause) => columnTime(cause.usual_ns) },
            { label: 'Difference', number: true, cell: (cause) => columnSigned(cause.time_ns - cause.usual_ns) },
            { label: 'Calls', number: true, cell: callsText },
          ]} />
          <p class="beside">A wait may lie in an operator, and that in a part of the step: the times do not add up.</p>
        </>
      )}
    </section>
  );
}

function callsText({ calls, usual_calls: usual }: OutlierCause): string {
  if (calls === null || usual === null) return '–';
  return calls === usual ? count(calls) : `${count(usual)} → ${count(calls)}`;
}
