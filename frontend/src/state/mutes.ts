/** Mutes: stored in this browser, or, on request, beside the runs for everybody. */

import { computed, signal } from '@preact/signals';
import { getMutes, postMutes } from '../api/client';
import type { MutesAnswer } from '../api/types.gen';
import { changed, mutesFrom, NOTHING, type MuteChange, type Mutes } from '../base/mutes';
import { faultInfo, reach } from './connection';
import { toast } from './notices';
import { readSetting, writeSetting } from './settings';

const KEY = 'torchtidy.mutes';

const own = signal<Mutes>(NOTHING);
const shared = signal<MutesAnswer | null>(null);

export const mutes = computed<Mutes>(() => (shared.value?.kept ? shared.value.mutes : own.value));

/** Place of the mutes: the file's path, or null for this browser. */
export const keptIn = computed<string | null>(() => (shared.value?.kept ? shared.value.path : null));

/** The file that could hold them for everybody; null if there cannot be one, or if it already holds them. */
export const couldKeepIn = computed<string | null>(() => (shared.value?.can_keep && !shared.value.kept ? shared.value.path : null));

/**
 * Nothing is hidden by mistake: until the server has answered, or if it cannot read its file, the browser's own mutes
 * count.
 */
export async function loadMutes(): Promise<void> {
  own.value = mutesFrom(readSetting(KEY));
  try {
    shared.value = await reach(getMutes({}));
  } catch (error) {
    const fault = faultInfo(error);
    if (fault && fault.code === CONFLICT) toast(fault.message);
  }
}

const CONFLICT = 409;

export async function changeMutes(change: MuteChange): Promise<void> {
  if (shared.peek()?.kept) {
    await post(change);
    return;
  }
  own.value = changed(own.peek(), change);
  writeSetting(KEY, JSON.stringify(own.peek()));
}

/** Stores the browser's own mutes beside the runs; from then on everybody who sees these runs shares them. */
export const shareMutes = (): Promise<void> => post({ mute: own.peek(), unmute: NOTHING });

async function post(change: MuteChange): Promise<void> {
  try {
    shared.value = await reach(postMutes(change));
  } catch (error) {
    toast(faultInfo(error)?.message ?? 'The server does not answer; nothing was changed.');
  }
}
