/** The roofline plot: rates over the work per byte, both in powers of ten, under the device's limits. */

import type { Roofline } from '../api/types.gen';

export type Dot = Roofline['dots'][number];

/** Decades, as exponents of ten. */
export interface Range { low: number; high: number }
export interface Line { name: string; x1: number; y1: number; x2: number; y2: number }
export interface Plot { x: Range; y: Range; lines: readonly Line[]; dots: readonly { dot: Dot; x: number; y: number; radius: number }[] }

/** Operations per byte. */
export const intensityOf = ({ flops_per_second: flops, bytes_per_second: moved }: Pick<Dot, 'flops_per_second' | 'bytes_per_second'>): number => flops / moved;

const rangeOf = (values: readonly number[]): Range => {
  const exponents = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const low = Math.floor(exponents.reduce((least, each) => Math.min(least, each), Infinity));
  const high = Math.ceil(exponents.reduce((most, each) => Math.max(most, each), -Infinity));
  return Number.isFinite(low) ? { low, high: Math.max(high, low + 1) } : { low: 0, high: 1 };
};

/** From 0 at the low end to 1 at the high end. */
const across = (value: number, { low, high }: Range): number => (Math.log10(value) - low) / (high - low);

const [LEAST_PX, MOST_PX] = [3, 18];

/** All of it in parts of the width from the left, and of the height from the top. The area of a dot is its share. */
export function plotOf({ bytes_per_second: moved, ceilings }: Pick<Roofline, 'bytes_per_second' | 'ceilings'>, dots: readonly Dot[]): Plot {
  const ridges = moved === null ? [] : ceilings.map(({ flops_per_second: most }) => most / moved);
  const x = rangeOf([...dots.map(intensityOf), ...ridges]);
  const y = rangeOf([...dots.map((dot) => dot.flops_per_second), ...ceilings.map(({ flops_per_second: most }) => most)]);
  const down = (rate: number): number => 1 - across(rate, y);
  const lines: Line[] = [];
  if (moved !== null) {
    const top = ceilings.reduce((most, each) => Math.max(most, each.flops_per_second), 0);
    const from = Math.max(10 ** x.low, 10 ** y.low / moved);
    const to = Math.min(10 ** x.high, top / moved);
    if (to > from) lines.push({ name: 'memory', x1: across(from, x), y1: down(from * moved), x2: across(to, x), y2: down(to * moved) });
    for (const { name, flops_per_second: most } of ceilings) lines.push({ name, x1: across(most / moved, x), y1: down(most), x2: 1, y2: down(most) });
  }
  const largest = dots.reduce((most, { share }) => Math.max(most, share), 0);
  return {
    x, y, lines,
    dots: dots.map((dot) => ({
      dot, x: across(intensityOf(dot), x), y: down(dot.flops_per_second),
      radius: Math.max(LEAST_PX, MOST_PX * Math.sqrt(largest > 0 ? dot.share / largest : 0)),
    })).toSorted((one, other) => other.radius - one.radius), // small ones stay visible
  };
}

/** The powers of ten inside a range, including both ends. */
export const decades = ({ low, high }: Range): number[] => Array.from({ length: high - low + 1 }, (_, at) => low + at);
