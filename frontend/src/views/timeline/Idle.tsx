/** Why nothing runs at the clicked time. */

import type { IdleAnswer } from '../../api/types.gen';
import { nanoseconds } from '../../base/units';
import { Button } from '../../components/Button';
import { IdleFacts, type IdleReason } from '../../components/IdleFacts';
import { findings } from '../../state/findings';
import { ledger } from '../../state/profile';
import { go } from '../../state/route';
import { markEvent } from '../../state/timeline';

export function Idle({ answer: { gap, accounted, least_ns: least } }: { answer: IdleAnswer }) {
  if (!gap) return <p class="muted" role="status">{whyNone(accounted, least)}</p>;
  return <IdleFacts start_ns={gap.start_ns} end_ns={gap.end_ns} reasons={gap.parts.map(reasonOf)} onGo={markEvent} />;
}

function whyNone(accounted: boolean, least: number): string {
  if (!accounted) return 'This time lies outside the steps: the account of the step leaves it out.';
  return least > 0 ? `Another stream works here, or the gap is not longer than ${nanoseconds(least)}.` : 'Another stream works here: the device does not idle.';
}

function reasonOf({ entry: id, ns, call, work }: NonNullable<IdleAnswer['gap']>['parts'][number]): IdleReason {
  const known = ledger.value?.entries.find((entry) => entry.id === id);
  const finding = findings.value.find((each) => each.id === known?.finding_id);
  const advice = finding ? <Button kind="quiet" onClick={() => go({ view: 'findings', finding: finding.id }, 'push')}>To the finding that shortens it</Button> : known?.advice;
  return { title: known?.title ?? id.replaceAll('_', ' '), ns, call, work, proof: known?.proof_text ?? '', advice };
}
