/** Small statistics over recorded steps. */

/** Linear interpolation between the two nearest values; null for none. */
export function quantile(values: readonly number[], q: number): number | null {
  const ordered = values.toSorted((a, b) => a - b);
  const position = (ordered.length - 1) * q;
  const below = ordered[Math.floor(position)];
  const above = ordered[Math.ceil(position)];
  if (below === undefined || above === undefined) return null;
  return below + (above - below) * (position - Math.floor(position));
}

export interface Spread { label: string; low: number; high: number }

const ENOUGH_FOR_QUANTILES = 10; // below that the 10th percentile is the minimum in all but name

/** How far values spread: 10th to 90th percentile, or all of the range where there are few. */
export function spread(values: readonly number[]): Spread | null {
  const few = values.length < ENOUGH_FOR_QUANTILES;
  const low = quantile(values, few ? 0 : 0.1);
  const high = quantile(values, few ? 1 : 0.9);
  if (values.length < 2 || low === null || high === null) return null;
  return { label: few ? 'min–max' : 'p10–p90', low, high };
}
