/** The result of a benchmark, in words and on an axis. */

import { nanoseconds, plural } from './units';

export interface Ratio { middle: number; low: number; high: number }

interface MeasuredLike { ratio: number; low: number; high: number; verdict: 'faster' | 'slower' | 'no_clear_difference' }

/** Speed-up by the fix: the inverse of the stored ratio, time after divided by time before. */
export const speedUp = ({ ratio, low, high }: MeasuredLike): Ratio => ({ middle: 1 / ratio, low: 1 / high, high: 1 / low });

const WIDE = 0.2; // for an interval of this width, one decimal is enough

const MOST = 1000; // a fix that leaves next to nothing: its exact size makes no difference to anybody

/** `1.8×` and `(1.6–2.0)`, with as many decimals as distinguish the ends of the interval. */
export function speedUpText(measured: MeasuredLike): { factor: string; range: string } {
  const { middle, low, high } = speedUp(measured);
  const decimals = middle >= 100 ? 0 : middle >= 10 || high - low >= WIDE ? 1 : 2;
  const text = (value: number): string => (value > MOST ? `>${MOST}` : value.toFixed(decimals));
  return { factor: `${text(middle)}×`, range: low > MOST ? '' : `(${text(low)}–${text(high)})` };
}

const EVEN = 0.01; // the server's own limit: a ratio closer to 1 is not a difference

/** The meaning of the interval in words; one that excludes 1 without a verdict comes from too few samples. */
export function verdictText({ verdict, low, high }: MeasuredLike): string {
  if (verdict !== 'no_clear_difference') return verdict === 'faster' ? 'Faster with the fix' : 'Slower with the fix';
  return high < 1 - EVEN || low > 1 + EVEN ? 'Too few samples to tell' : 'No clear difference';
}

/** The result in one line, for screen readers. */
export function resultText(measured: MeasuredLike): string {
  const { factor, range } = speedUpText(measured);
  return `${verdictText(measured)}: ${[factor, range].filter(Boolean).join(' ')}`;
}

interface Place { name: string; torch: string; runtime: string; threads: number }

/** `NVIDIA A100 · PyTorch 2.13.0 · CUDA 12.8 · 8 threads`. */
export const placeText = ({ name, torch, runtime, threads }: Place): string =>
  [name, `PyTorch ${torch}`, runtime, plural(threads, 'thread')].filter(Boolean).join(' · ');

/** A time in UTC as people write it, `2 Jan 2026, 03:04 UTC`; unchanged if it is not a time. */
export function whenText(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return at;
  const text = time.toLocaleString('en-GB', { day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', timeZone: 'UTC' });
  return `${text} UTC`;
}

export const EQUALITY = (equal: boolean | null): string => {
  if (equal === null) return 'Not compared: the statements leave nothing behind';
  return equal ? 'Both leave the same result' : 'They leave different results';
};

interface Use { trusted: boolean; kind: string; recordedKind: string; ofEvents: boolean; inSaving: boolean; kept: boolean }

/** Remark on whether a saving is based on a measurement, and if not, why not. */
export function useText({ trusted, kind, recordedKind, ofEvents, inSaving, kept }: Use): string {
  if (inSaving) return 'Used in the saving';
  if (kind !== recordedKind) return `Not used in the saving: measured on ${kind}, recorded on ${recordedKind}`;
  if (!trusted) return 'Not used in the saving: it is not reliable enough';
  if (!ofEvents) return 'Not used in the saving: the statements are not exactly what the matched events do';
  return kept ? 'On its way into the saving' : 'Not used in the saving: it could not be kept';
}

export interface Dot { at: number; row: number; beyond: boolean }
export interface DotAxis { most: number; dots: Dot[]; beyond: number }

const FAR = 2.5; // times the longer median: dots beyond are drawn at the edge, or a single hiccup would squeeze all others
const ROOM = 1.05;

/** Dots of samples on an axis from 0 to `most`, which begins at zero so that lengths compare; `row` spreads equal ones, -1 to 1. */
export function dotAxis(samples: readonly number[], medians: readonly number[], all: readonly number[]): DotAxis {
  const limit = Math.max(...medians) * FAR;
  const most = Math.max(...medians, ...all.filter((value) => value <= limit)) * ROOM;
  const dots = samples.map((value, index) => ({ at: Math.min(value / most, 1), row: SPREAD[index % SPREAD.length] ?? 0, beyond: value > most }));
  return { most, dots, beyond: dots.filter((dot) => dot.beyond).length };
}

const SPREAD = [0, 0.6, -0.6, 0.3, -0.3, 0.9, -0.9];

/** The whole plot in a sentence. */
export const plotText = (before: { ns: number; samples: readonly number[] }, after: { ns: number; samples: readonly number[] }): string =>
  [`Before: median ${nanoseconds(before.ns)}${spread(before.samples)}.`, `After: median ${nanoseconds(after.ns)}${spread(after.samples)}.`].join(' ');

const spread = (samples: readonly number[]): string =>
  (samples.length === 0 ? '' : `, ${nanoseconds(Math.min(...samples))} to ${nanoseconds(Math.max(...samples))}`);

/** The queue position, in words. */
export const queueText = (ahead: number): string =>
  (ahead === 0 ? 'Next in the queue' : `Waiting for ${plural(ahead, 'benchmark')} before it`);
