/** Samples of a few things on one axis from zero: a dot each, and a line at the middle. */

import { ticks } from '../base/axis';
import { dotAxis } from '../base/benchmarks';
import { nanoseconds } from '../base/units';

export interface DotRow { label: string; kind: 'plain' | 'accent'; medianNs: number; samplesNs: readonly number[] }

interface Props { title: string; description: string; rows: readonly DotRow[] }

const ROW_PX = 40;
const AXIS_PX = 20;
const SPREAD_PX = 10;
const per = (part: number): string => `${part * 100}%`;

export function DotPlot({ title, description, rows }: Props) {
  const medians = rows.map(({ medianNs }) => medianNs);
  const all = rows.flatMap(({ samplesNs }) => samplesNs);
  const { most } = dotAxis([], medians, all);
  const marks = ticks(most, 5).filter((mark) => mark < most * 0.97);
  const height = rows.length * ROW_PX;
  return (
    <div class="dot-plot">
      <div class="dot-labels" aria-hidden="true">{rows.map(({ label }) => <span>{label}</span>)}</div>
      <svg role="img" aria-label={description} width="100%" height={height + AXIS_PX}>
        <title>{title}</title>
        <desc>{description}</desc>
        {marks.map((mark, index) => (
          <>
            <line class="plot-grid" x1={per(mark / most)} x2={per(mark / most)} y1="0" y2={height} />
            <text class="dot-mark" x={per(mark / most)} y={height + 14} text-anchor={index === 0 ? 'start' : 'middle'}>{mark === 0 ? '0' : nanoseconds(mark)}</text>
          </>
        ))}
        {rows.map(({ kind, medianNs, samplesNs }, at) => (
          <g class={`dots ${kind}`}>
            {dotAxis(samplesNs, medians, all).dots.map((dot) => (
              <circle class={dot.beyond ? 'beyond' : ''} cx={per(dot.at)} cy={ROW_PX * (at + 0.5) + dot.row * SPREAD_PX} r="3" />
            ))}
            <line class="dot-median" x1={per(medianNs / most)} x2={per(medianNs / most)} y1={ROW_PX * at + 5} y2={ROW_PX * (at + 1) - 5} />
          </g>
        ))}
      </svg>
      <div class="dot-values">{rows.map(({ medianNs }) => <span class="number">{nanoseconds(medianNs)}</span>)}</div>
    </div>
  );
}
