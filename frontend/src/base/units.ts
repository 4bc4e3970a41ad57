/** Numbers with a unit as text. Python's `units.py` follows the same rules; `tests/words/units_cases.json` tests both. */

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const TIME_UNITS = ['ns', 'µs', 'ms', 's'];

/** A size in bytes, in binary units: `4 KiB`. */
export const bytes = (value: number): string => scaled(value, 1024, BYTE_UNITS);

/** A duration in nanoseconds, in the largest unit that keeps it at 1 or above: `1.25 ms`. */
export const nanoseconds = (value: number): string => scaled(value, 1000, TIME_UNITS);

/** `−11.8 ms`, `+320 µs`, `0 ns`. */
export const signed = (ns: number): string => `${ns > 0 ? '+' : ns < 0 ? '−' : ''}${nanoseconds(Math.abs(ns))}`;

/** A part of a whole between 0 and 1, as per cent: `12.5 %`. */
export const share = (value: number): string => `${threeDigits(value * 100)} %`;

/** The same for a column of parts: existing parts are never `0 %`. */
export const partShare = (value: number): string => (value > 0 && share(value) === share(0) ? '<0.01 %' : share(value));

/**
 * The same four for a column of a table: trailing zeros stay, so that numbers of one unit are equally long and their
 * digits stand below each other: `83.0 ms` above `32.4 ms`. Whole bytes and nanoseconds have no decimals.
 */
export const columnBytes = (value: number): string => scaled(value, 1024, BYTE_UNITS, threeFullDigits);
export const columnTime = (value: number): string => scaled(value, 1000, TIME_UNITS, threeFullDigits);
export const columnSigned = (ns: number): string => `${ns > 0 ? '+' : ns < 0 ? '−' : ''}${columnTime(Math.abs(ns))}`;
export const columnShare = (value: number): string => (value > 0 && share(value) === share(0) ? '<0.01 %' : `${threeFullDigits(value * 100)} %`);

/** A point in time since the profile's start, exact enough to distinguish neighbours: `1,234.567 ms`. */
export const moment = (value: number): string =>
  `${(value / 1e6).toLocaleString('en-US', { minimumFractionDigits: 3, maximumFractionDigits: 3 })} ms`;

/** A whole number with thousands separators: `56,451`. */
export const count = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 1 });

/** `1 match`, `2 matches`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

/** One unit for a whole column of durations, so that its numbers can be compared by eye. */
export interface TimeUnit { name: string; ns: number }

/** The unit in which `nanoseconds` would show `value`. */
export function timeUnit(value: number): TimeUnit {
  const name = nanoseconds(value).split(' ')[1] ?? 'ns';
  return { name, ns: 1000 ** Math.max(0, TIME_UNITS.indexOf(name)) };
}

/** The unit of this name, null if there is none. */
export const unitNamed = (name: string): TimeUnit | null => (TIME_UNITS.includes(name) ? { name, ns: 1000 ** TIME_UNITS.indexOf(name) } : null);

/** `value` in a given unit, without the unit's name: `18.4`. */
export function inUnit(value: number, unit: TimeUnit): string {
  const text = threeDigits(value / unit.ns);
  return text === '0' && value > 0 ? '<0.01' : text;
}

/** The same with trailing zeros, for a column: `18.0`. */
export function columnInUnit(value: number, unit: TimeUnit): string {
  const text = inUnit(value, unit);
  return text.startsWith('<') || unit.ns === 1 ? text : threeFullDigits(value / unit.ns);
}

/** The unit is the one in which the rounded number stays below `base`: 999.6 µs is shown as `1 ms`. */
function scaled(value: number, base: number, units: readonly string[], digits = threeDigits): string {
  let number = value;
  let step = 0;
  while (step < units.length - 1 && Math.abs(rounded(number)) >= base) {
    number /= base;
    step += 1;
  }
  return `${(step > 0 ? digits : threeDigits)(number)} ${units[step] ?? ''}`;
}

/** Three significant digits without trailing zeros, never in exponent form. */
function threeDigits(number: number): string {
  const text = rounded(number).toFixed(decimals(number));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Three significant digits, zeros included; two decimals at most, and none for zero. */
function threeFullDigits(number: number): string {
  const value = rounded(number);
  return value === 0 ? '0' : value.toFixed(decimals(value));
}

const decimals = (number: number): number => {
  const magnitude = Math.abs(number);
  return magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
};

/** Rounds half away from zero. Spelt out, since the number formatters of the two languages round halves differently. */
function rounded(number: number): number {
  const scale = 10 ** decimals(number);
  const result = Math.floor(Math.abs(number) * scale + 0.5) / scale;
  return number < 0 && result > 0 ? -result : result;
}
