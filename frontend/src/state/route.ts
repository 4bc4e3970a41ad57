/** The route as a signal, synchronised with the host page's address. */

import { signal } from '@preact/signals';
import { routeFrom, routeKeys, START, withConsequences, type Route } from '../base/route';
import { writeUrl } from './host';

export const route = signal<Route>(START);

const SETTLED_MS = 500; // one entry in the history for a walk through the list, not one for each row
let settling: ReturnType<typeof setTimeout> | undefined;

/**
 * Changes the route. `push` adds an entry to the history, `replace` does not, and `settle` pushes once the last change
 * is half a second old.
 */
export function go(changes: Partial<Route>, how: 'push' | 'replace' | 'settle'): void {
  route.value = { ...route.peek(), ...withConsequences(route.peek(), changes) };
  clearTimeout(settling);
  if (how === 'settle') settling = setTimeout(() => write('push'), SETTLED_MS);
  else write(how);
}

/** Takes the route from an address that has changed, or has just been opened; an empty one is the list of all runs. */
export function restore(keys: Record<string, string>): void {
  clearTimeout(settling);
  route.value = routeFrom(Object.keys(keys).length > 0 ? keys : { view: 'runs' });
}

const write = (how: 'push' | 'replace'): void => writeUrl(routeKeys(route.peek()), how);
