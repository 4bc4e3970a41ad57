/** Callers of the open place of a finding. */

import { getStack } from '../api/client';
import type { StackAnswer } from '../api/types.gen';
import { NO_KEY } from '../base/selection';
import { shownVersion } from './answers';
import { readyOr, resource, useResource } from './resource';
import { selectedKey } from './runs';

const stacks = resource<StackAnswer>({ keep: 24, once: true });

/** For a component; null until it is known, and if the recording or the server does not show it. */
export function useStack(finding: string, place: number): StackAnswer | null {
  const key = selectedKey.value;
  return readyOr(useResource(stacks, key ? `${shownVersion()} ${finding} ${place}` : '', (given) => getStack({ ...(key ?? NO_KEY), finding, place }, given)), null);
}
