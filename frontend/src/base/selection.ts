/** The profile for an address that names one, a part of one, or none. */

export interface ProfileKey { run: string; worker: string; span: string }

/** Placeholder in requests that are not sent before a profile is selected. */
export const NO_KEY: ProfileKey = { run: '', worker: '', span: '' };

interface ProfileLike { worker: string; span: string }
interface RunLike<P> { run: string; profiles: readonly P[] }

export interface Selection<P> { run: string; profile: P }

/**
 * The named profile; for open parts of the address, the first worker's latest span. Without a run that is there, none:
 * never the profile of another run, unless there is only one.
 */
export function select<P extends ProfileLike>(runs: readonly RunLike<P>[], key: ProfileKey): Selection<P> | null {
  const recorded = runs.filter(({ profiles }) => profiles.length > 0);
  const run = recorded.find((each) => each.run === key.run) ?? (recorded.length === 1 ? recorded[0] : undefined);
  if (!run) return null;
  const worker = run.profiles.some((each) => each.worker === key.worker) ? key.worker : run.profiles[0]?.worker;
  const ofWorker = run.profiles.filter((each) => each.worker === worker);
  const profile = ofWorker.find((each) => each.span === key.span) ?? ofWorker.at(-1);
  return profile ? { run: run.run, profile } : null;
}

export const keyText = (key: ProfileKey): string => JSON.stringify([key.run, key.worker, key.span]);

/** Milliseconds since 1970 if a span states the time of the recording: in nanoseconds, or in milliseconds. */
export function spanTime(span: string): number | null {
  const digits = /^\d{13,19}$/.exec(span)?.[0];
  return digits === undefined ? null : Number(digits.slice(0, 13));
}

/** A span that is a time as a date, any other as it is. */
export function spanText(span: string, locale?: string): string {
  const time = spanTime(span);
  return time === null ? span : new Date(time).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'medium' });
}
