/** Spread of the durations of steps. */

export interface Spread { label: string; low: number; high: number }

interface StepsLike { items: readonly { duration_ns: number }[]; p10_ns?: number | null; p90_ns?: number | null }

const ENOUGH_FOR_PERCENTILES = 10; // with fewer steps, the 10th percentile is practically the minimum

/** The server's percentiles, or the whole range for few steps. */
export function spread({ items, p10_ns: low = null, p90_ns: high = null }: StepsLike): Spread | null {
  const durations = items.map((step) => step.duration_ns);
  if (durations.length < 2) return null;
  if (durations.length >= ENOUGH_FOR_PERCENTILES && low !== null && high !== null) return { label: 'p10–p90', low, high };
  return { label: 'min–max', low: Math.min(...durations), high: Math.max(...durations) };
}
