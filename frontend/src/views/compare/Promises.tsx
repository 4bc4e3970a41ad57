/** Predictions of the baseline's findings, and realised savings. */

import type { Comparison } from '../../api/types.gen';
import { actionOf } from '../../base/actionTitles';
import { isKept } from '../../base/compare';
import { columnSigned, columnTime, nanoseconds, signed } from '../../base/units';
import { DataTable } from '../../components/DataTable';
import { PairedBars } from '../../components/PairedBars';
import { Message } from '../../components/Spans';
import { TableTwin } from '../../components/TableTwin';

const NAMES: [string, string] = ['promised', 'kept'];

export function Promises({ comparison: { predicted_ns: promised, realised_ns: kept, findings } }: { comparison: Comparison }) {
  const changed = findings.filter(isKept);
  if (changed.length === 0 || kept === null) return null;
  const sum = changed.reduce((total, each) => total + each.predicted_ns, 0);
  const rows = [
    { key: 'all', name: <b>All together</b>, promised, kept },
    ...changed.map((each) => ({ key: each.id, name: <Message text={actionOf(each)} />, promised: each.predicted_ns, kept: each.realised_ns })),
  ];
  return (
    <TableTwin title="Promised and kept" note={`promised ${nanoseconds(promised)}, kept ${keptText(kept)} per step`}
      chart={(
        <>
          <PairedBars label="Promised and kept" names={NAMES} pairs={rows.map((row) => ({
            key: row.key, name: row.name, strong: row.key === 'all',
            first: { value: row.promised, text: columnTime(row.promised) }, second: { value: row.kept, text: columnKept(row.kept) },
          }))} />
          {promised < sum && <p class="beside">Some findings share time, so all together promise less than their sum.</p>}
          {changed.length > 1 && <p class="beside">Measured is the step as a whole. Of what it became shorter by, each finding has the part that it promised.</p>}
        </>
      )}
      table={() => (
        <DataTable label="Table of promised and kept" rows={rows} columns={[
          { label: 'Finding', cell: (row) => row.name },
          { label: 'Promised', number: true, cell: (row) => columnTime(row.promised) },
          { label: 'Kept', number: true, cell: (row) => columnKept(row.kept) },
          { label: 'Difference', number: true, cell: (row) => columnSigned(row.kept - row.promised) },
        ]} />
      )} />
  );
}

/** For steps that became longer, the realised saving is negative. */
const keptText = (ns: number): string => (ns < 0 ? signed(ns) : nanoseconds(ns));
const columnKept = (ns: number): string => (ns < 0 ? columnSigned(ns) : columnTime(ns));
