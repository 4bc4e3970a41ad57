/** Said as loudly as a finding: what ranks show together is not known before the others of the run have been read. */

import { plural } from '../../base/units';
import { Button } from '../../components/Button';
import { Notice } from '../../components/Notice';
import { gathering, gatherRanks, ranksKnown, ranksPending } from '../../state/ranks';
import { selectedKey } from '../../state/runs';

export function Ranks() {
  const pending = ranksPending.value;
  const key = selectedKey.value;
  if (pending === 0 || !key) return null;
  const read = `${plural(ranksKnown.value, 'rank')} read, ${plural(pending, 'trace')} to go`;
  if (gathering.value) return <Notice kind="info"><p>Reading the other ranks of this run: {read}.</p></Notice>;
  return (
    <Notice kind="info" action={<Button onClick={() => void gatherRanks(key)}>Read them</Button>}>
      <p><b>Not all ranks are read:</b> {read}. Who waits for whom shows only when ranks are compared.</p>
    </Notice>
  );
}
