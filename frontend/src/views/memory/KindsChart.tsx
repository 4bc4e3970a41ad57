/** A device's memory over time by purpose, stacked. */

import { useMemo, useState } from 'preact/hooks';
import type { DeviceMemoryRow } from '../../api/types.gen';
import { byteTicks, ticks } from '../../base/axis';
import { layersOf, MEMORY_KINDS, memoryKindText, type MemoryKind } from '../../base/memoryKinds';
import { across, areaPath, down, pointAt, type Frame } from '../../base/series';
import { bytes, columnBytes, columnShare, moment, nanoseconds } from '../../base/units';
import { Button } from '../../components/Button';
import { DataTable } from '../../components/DataTable';
import { endOf } from './MemoryChart';

const SIZE = { width: 1000, height: 220 }; // stretched to the available room

interface Props { device: DeviceMemoryRow; onKind: (kind: MemoryKind) => void }

export function KindsChart({ device: row, onKind }: Props) {
  const { device, kinds = [], kinds_ns: times = [], peak_bytes: peak, peak_ns: peakAt } = row;
  const layers = useMemo(() => layersOf(kinds), [kinds]);
  const [at, setAt] = useState<{ time: number; value: number } | null>(null);
  const to = endOf(row);
  const most = Math.max(1, layers.at(-1)?.top.reduce((high, value) => Math.max(high, value), 0) ?? 1) * 1.05;
  const frame: Frame = { from: 0, to, most, ...SIZE };
  const pointed = (event: PointerEvent | MouseEvent): { time: number; value: number } | null => {
    if (!(event.currentTarget instanceof HTMLElement)) return null;
    const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
    return { time: ((event.clientX - left) / width) * to, value: (1 - (event.clientY - top) / height) * most };
  };
  const under = (point: { time: number; value: number } | null): { kind: MemoryKind; ns: number; held: number } | null => {
    const index = point ? pointAt(times, point.time) : -1;
    const layer = layers.find(({ top }) => index >= 0 && (point?.value ?? 0) <= (top[index] ?? 0));
    return layer ? { kind: layer.kind, ns: times[index] ?? 0, held: layer.bytes[index] ?? 0 } : null;
  };
  const read = under(at);
  const choose = (event: MouseEvent): void => {
    const there = under(pointed(event));
    if (there) onKind(there.kind);
  };
  const label = `Memory of ${device} by kind`;
  return (
    <section class="chart" aria-label={label}>
      <div class="chart-head"><h3>By kind on {device}</h3><span class="muted">by the pass that allocates it and how long it lives; the peak at {nanoseconds(peakAt)}</span></div>
      <figure class="step-chart" aria-label={label}>
        <div class="step-plot kinds-plot" {...{ onPointerMove: (event: PointerEvent) => setAt(pointed(event)), onPointerLeave: () => setAt(null), onClick: choose }}>
          {byteTicks(most).map((value) => <span class="plot-mark" style={{ top: `${(down(frame, value) / SIZE.height) * 100}%` }} aria-hidden="true">{value === 0 ? '0' : bytes(value)}</span>)}
          {ticks(to, 6).map((time) => <span class="plot-time" style={{ left: `${(across(frame, time) / SIZE.width) * 100}%` }} aria-hidden="true">{time === 0 ? '0' : nanoseconds(time)}</span>)}
          <svg viewBox={`0 0 ${SIZE.width} ${SIZE.height}`} preserveAspectRatio="none" role="img" aria-label={`${label}; the table below has each kind at the peak`}>
            {layers.toReversed().map(({ kind, top }) => <path class={`kind-area kind-${kind}`} d={areaPath({ times, values: top }, frame)} />)}
          </svg>
        </div>
        <figcaption class="plot-legend"><span class="muted number">{read ? `${moment(read.ns)}: ${memoryKindText(read.kind)}, ${bytes(read.held)}; click to list what holds it at the peak` : ''}</span></figcaption>
      </figure>
      <DataTable label={`Kinds of memory on ${device}`} rows={layers.toReversed()} columns={[
        { label: 'Kind', cell: ({ kind }) => <><span class={`kind-swatch kind-${kind}`} aria-hidden="true" /><Button kind="quiet" onClick={() => onKind(kind)}>{memoryKindText(kind)}</Button></> },
        { label: 'At the peak', number: true, cell: ({ peak: held }) => (held < 0 ? '–' : columnBytes(held)) },
        { label: 'Of the peak', number: true, cell: ({ peak: held }) => (peak > 0 && held >= 0 ? columnShare(held / peak) : '–') },
        { label: 'Most at any time', number: true, cell: ({ bytes: values }) => columnBytes(values.reduce((high, value) => Math.max(high, value), 0)) },
        { label: 'What it is', cell: ({ kind }) => <span class="kind-what">{MEMORY_KINDS[kind]?.what ?? ''}</span> },
      ]} />
    </section>
  );
}
