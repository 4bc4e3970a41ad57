/** Values over time that are constant until the next one: one filled line, and lines above it. */

import { useState } from 'preact/hooks';
import { across, areaPath, down, pointAt, stepPath, type Frame } from '../base/series';

interface Props {
  label: string;
  description: string;
  times: readonly number[];
  lines: readonly { name: string; kind: 'area' | 'dashed'; values: readonly number[] }[];
  from: number;
  to: number;
  most: number;
  marks: readonly { value: number; text: string }[];
  timeMarks: readonly { time: number; text: string }[];
  peak: { time: number; value: number; text: string };
  /** Text for a point below the pointer. */
  read: (index: number) => string;
}

const SIZE = { width: 1000, height: 200 }; // stretched to the available room
const TO_THE_LEFT = 0.6; // of the width: a label further right would leave the chart

export function StepChart({ label, description, times, lines, from, to, most, marks, timeMarks, peak, read }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const frame: Frame = { from, to, most, ...SIZE };
  const left = (time: number): string => `${(across(frame, time) / SIZE.width) * 100}%`;
  const top = (value: number): string => `${(down(frame, value) / SIZE.height) * 100}%`;
  const move = (event: PointerEvent): void => {
    if (!(event.currentTarget instanceof HTMLElement)) return;
    const { left: start, width } = event.currentTarget.getBoundingClientRect();
    setAt(from + ((event.clientX - start) / width) * (to - from));
  };
  const index = at === null ? -1 : pointAt(times, at);
  const flip = across(frame, peak.time) > SIZE.width * TO_THE_LEFT;
  return (
    <figure class="step-chart" aria-label={label}>
      <div class="step-plot" {...{ onPointerMove: move, onPointerLeave: () => setAt(null) }}>
        {marks.map(({ value, text }) => <span class="plot-mark" style={{ top: top(value) }} aria-hidden="true">{text}</span>)}
        {timeMarks.map(({ time, text }) => <span class="plot-time" style={{ left: left(time) }} aria-hidden="true">{text}</span>)}
        <svg viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} preserveAspectRatio="none" role="img" aria-label={description}>
          <title>{label}</title>
          <desc>{description}</desc>
          {marks.map(({ value }) => <path class="plot-grid" d={`M0 ${down(frame, value)}H${SIZE.width}`} />)}
          {lines.map(({ kind, values }) => (kind === 'area' ? (
            <>
              <path class="plot-area" d={areaPath({ times, values }, frame)} />
              <path class="plot-line" d={stepPath({ times, values }, frame)} />
            </>
          ) : <path class="plot-line dashed" d={stepPath({ times, values }, frame)} />))}
        </svg>
        {at !== null && <span class="plot-cursor" style={{ left: left(at) }} />}
        <span class="plot-peak" style={{ left: left(peak.time), top: top(peak.value) }} aria-hidden="true" />
        <span class={`plot-peak-text${flip ? ' flip' : ''}`} style={{ left: left(peak.time), top: top(peak.value) }}>{peak.text}</span>
      </div>
      <figcaption class="plot-legend">
        {lines.map(({ name, kind }) => <span><span class={`plot-key ${kind}`} aria-hidden="true" />{name}</span>)}
        <span><span class="plot-key peak" aria-hidden="true" />peak</span>
        <span class="muted number">{index >= 0 ? read(index) : ''}</span>
      </figcaption>
    </figure>
  );
}
