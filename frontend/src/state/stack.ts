/** What called the open place of a finding. */

import { useEffect, useState } from 'preact/hooks';
import { getStack } from '../api/client';
import type { StackAnswer } from '../api/types.gen';
import { faultInfo, gone, reach } from './connection';
import { shownVersion } from './answers';
import { selectedKey } from './runs';

/** For a component; null until it is known, and where the recording or the server does not tell. */
export function useStack(finding: string, place: number): StackAnswer | null {
  const of = `${shownVersion()} ${finding} ${place}`;
  const [said, setSaid] = useState<{ of: string; answer: StackAnswer } | null>(null);
  const offline = gone.value;
  useEffect(() => {
    const key = selectedKey.peek();
    if (!key) return undefined;
    const turn = new AbortController();
    reach(getStack({ ...key, finding, place }, turn.signal))
      .then((answer) => setSaid({ of, answer }))
      .catch((error: unknown) => { if (!turn.signal.aborted) faultInfo(error); });
    return () => turn.abort();
  }, [of, finding, place, offline]);
  return said?.of === of ? said.answer : null;
}
