/** Folded parts of findings and their list that the user has opened: they stay open from finding to finding. */

import { signal } from '@preact/signals';
import { go, route } from './route';
import { readSetting, writeSetting } from './settings';

export type Folded = 'why' | 'evidence' | 'small';

const KEY = 'torchtidy.unfolded';
const ALL: readonly Folded[] = ['why', 'evidence', 'small'];
const unfolded = signal<ReadonlySet<Folded>>(new Set());

export function restoreFolds(): void {
  const known = (readSetting(KEY) ?? '').split(',');
  unfolded.value = new Set(ALL.filter((each) => known.includes(each)));
}

/** A link to an event opens the evidence. */
export const isUnfolded = (id: Folded): boolean => unfolded.value.has(id) || (id === 'evidence' && route.value.event !== '');

export function unfold(id: Folded, open: boolean): void {
  if (!open && id === 'evidence' && route.peek().event) go({ event: '' }, 'replace');
  if (unfolded.peek().has(id) === open) return;
  unfolded.value = new Set(ALL.filter((each) => (each === id ? open : unfolded.peek().has(each))));
  writeSetting(KEY, [...unfolded.peek()].join(','));
}
