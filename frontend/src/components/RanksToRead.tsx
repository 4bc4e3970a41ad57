/** As prominent as a finding: findings about several ranks are unknown before the run's other ranks have been read. */

import { plural } from '../base/units';
import { Button } from './Button';
import { Notice } from './Notice';

interface Props { known: number; pending: number; reading: boolean; onRead: () => void }

export function RanksToRead({ known, pending, reading, onRead }: Props) {
  if (pending === 0) return null;
  const read = `${plural(known, 'rank')} read, ${plural(pending, 'trace')} to go`;
  if (reading) return <Notice kind="info"><p>Reading the other ranks of this run: {read}.</p></Notice>;
  return (
    <Notice kind="info" action={<Button onClick={onRead}>Read them</Button>}>
      <p><b>Not all ranks are read:</b> {read}. Who waits for whom shows only when ranks are compared.</p>
    </Notice>
  );
}
