/** Dots below the lines of a device's limits; the table below says the same. */

import { decades, type Dot, type Plot } from '../base/roofline';

interface Props { plot: Plot; label: string; chosen: Dot | null; onChoose: (dot: Dot) => void; textOf: (dot: Dot) => string; rateText: (rate: number) => string }

const per = (part: number): string => `${part * 100}%`;
const HEIGHT = 360;
const MOST_MARKS = 8;

export function RooflinePlot({ plot: { x, y, lines, dots }, label, chosen, onChoose, textOf, rateText }: Props) {
  const few = ({ low, high }: Plot['x']): number[] => decades({ low, high }).filter((at) => (at - low) % Math.ceil((high - low + 1) / MOST_MARKS) === 0);
  const part = (at: number, { low, high }: Plot['x']): number => (at - low) / (high - low);
  return (
    <figure class="roofline">
      <div class="roofline-plot" style={{ height: `${HEIGHT}px` }}>
        {few(y).map((at) => <span class="roofline-y" style={{ top: per(1 - part(at, y)) }} aria-hidden="true">{rateText(10 ** at)}</span>)}
        {few(x).map((at) => <span class="roofline-x" style={{ left: per(part(at, x)) }} aria-hidden="true">{(10 ** at).toLocaleString('en-US')}</span>)}
        <svg role="img" aria-label={label} width="100%" height={HEIGHT}>
          {few(y).map((at) => <line class="plot-grid" x1="0" x2="100%" y1={per(1 - part(at, y))} y2={per(1 - part(at, y))} />)}
          {few(x).map((at) => <line class="plot-grid" x1={per(part(at, x))} x2={per(part(at, x))} y1="0" y2="100%" />)}
          {lines.map((line) => <line class="roof" x1={per(line.x1)} y1={per(line.y1)} x2={per(line.x2)} y2={per(line.y2)} />)}
          {dots.map((each) => (
            <circle class={`roofline-dot ${each.dot.bound ?? 'unknown'}${each.dot === chosen ? ' chosen' : ''}`} cx={per(each.x)} cy={per(each.y)} r={each.radius} onClick={() => onChoose(each.dot)}>
              <title>{textOf(each.dot)}</title>
            </circle>
          ))}
        </svg>
        {lines.map(({ name, x1, y1, x2, y2 }) => (
          <span class={`roofline-name ${name === 'memory' ? 'slope' : ''}`} style={name === 'memory' ? { left: per((x1 + x2) / 2), top: per((y1 + y2) / 2) } : { top: per(y1) }} aria-hidden="true">{name}</span>
        ))}
      </div>
      <figcaption class="muted">Operations for each byte, to the right; operations per second, upwards; both in powers of ten.</figcaption>
    </figure>
  );
}
