/** Round values for the marks of an axis that starts at zero. */

const DECIMAL = [1, 2, 5, 10];

/** Marks from zero up, at 1, 2 or 5 times a power of ten; the last one is `most` or just below. */
export function ticks(most: number, about = 4): number[] {
  if (!(most > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(most / about));
  return marks(most, (DECIMAL.find((factor) => factor * power >= most / about) ?? 10) * power);
}

/** Marks for bytes: steps are powers of two, so that marks read `2 GiB`, `4 GiB`. */
export function byteTicks(most: number, about = 4): number[] {
  if (!(most > 0)) return [0];
  return marks(most, 2 ** Math.max(0, Math.ceil(Math.log2(most / about))));
}

const marks = (most: number, step: number): number[] =>
  Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
