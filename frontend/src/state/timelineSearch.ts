/** Events of the timeline by their names, one after the other. */

import { signal } from '@preact/signals';
import { getTimelineFound } from '../api/client';
import { NO_KEY } from '../base/selection';
import { count } from '../base/units';
import { faultInfo, reach } from './connection';
import { announce, toast } from './notices';
import { route } from './route';
import { selectedKey } from './runs';
import { markEvent } from './timeline';

export const searchText = signal('');
/** `3 of 57`, or that there is none. */
export const searchSaid = signal('');

let asked = 0;

/** Marks the next event whose name contains the text, or the previous one; the first search starts at `fromNs`. */
export async function findEvent(direction: 'next' | 'previous', fromNs: number): Promise<void> {
  const [q, key, event] = [searchText.peek().trim(), selectedKey.peek() ?? NO_KEY, route.peek().event];
  if (!q || key === NO_KEY) return;
  asked += 1;
  const turn = asked;
  try {
    const found = await reach(getTimelineFound({ ...key, q, direction, from_ns: Math.max(0, Math.floor(fromNs)), ...(event && { event: Number(event) }) }));
    if (turn !== asked) return;
    searchSaid.value = found.index === null ? 'No event has this name' : `${count(found.index + 1)} of ${count(found.total)}`;
    announce(searchSaid.value);
    if (found.event !== null) markEvent(found.event);
  } catch (error) {
    const fault = faultInfo(error);
    if (fault) toast(`${fault.message} ${fault.advice}`);
  }
}

export function typeSearch(text: string): void {
  searchText.value = text;
  searchSaid.value = '';
}
