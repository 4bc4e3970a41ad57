/** Values that are constant until the next point, as the lines of a chart. */

export interface Series { times: readonly number[]; values: readonly number[] }
export interface Frame { from: number; to: number; most: number; width: number; height: number }

/** Horizontal position of a time and vertical one of a value, within the frame. */
export const across = ({ from, to, width }: Frame, time: number): number => (to > from ? ((time - from) / (to - from)) * width : 0);
export const down = ({ most, height }: Frame, value: number): number => height - (most > 0 ? Math.min(1, Math.max(0, value / most)) : 0) * height;

/** The line of a series as the path of an SVG, up to the end of the frame. */
export function stepPath({ times, values }: Series, frame: Frame): string {
  if (times.length === 0) return '';
  const points = times.map((time, index) => {
    const [x, y] = [rounded(across(frame, time)), rounded(down(frame, values[index] ?? 0))];
    return index === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  return `${points.join('')}H${rounded(frame.width)}`;
}

/** The same line, closed along the bottom. */
export function areaPath(series: Series, frame: Frame): string {
  const line = stepPath(series, frame);
  return line && `${line}V${rounded(frame.height)}H${rounded(across(frame, series.times[0] ?? 0))}Z`;
}

const rounded = (pixels: number): number => Math.round(pixels * 10) / 10;

/** The position of the last point at or before a time; -1 before the first one. */
export function pointAt(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
