/** Memory by purpose, in words, and stacked for a chart. */

import type { DeviceMemoryRow } from '../api/types.gen';

export type KindCurve = NonNullable<DeviceMemoryRow['kinds']>[number];
export type MemoryKind = KindCurve['kind'];

/** From the bottom of the chart upwards. */
export const MEMORY_KINDS: Record<MemoryKind, { label: string; what: string }> = {
  earlier: { label: 'From before the recording', what: 'parameters, and what else was allocated before the first event' },
  parameter: { label: 'Parameters', what: 'allocated where modules are made, loaded or moved' },
  optimizer_state: { label: 'Optimizer states', what: 'allocated in the optimizer’s step and kept after it' },
  gradient: { label: 'Gradients', what: 'allocated in the backward pass and kept after it' },
  activation: { label: 'Activations', what: 'allocated before the backward pass and used by it' },
  input: { label: 'Inputs', what: 'copied to the device, or made by the data loader' },
  temporary: { label: 'Temporaries', what: 'freed in the pass that allocated them' },
  unknown: { label: 'Unknown', what: 'neither their phase nor their life tells what they are for' },
};

/** A kind from a newer server keeps its name. */
export const memoryKindText = (kind: MemoryKind): string => (Object.hasOwn(MEMORY_KINDS, kind) ? MEMORY_KINDS[kind].label : String(kind));

export interface Layer { kind: MemoryKind; bytes: readonly number[]; peak: number; top: readonly number[] }

/**
 * The layers from the bottom upwards; `top` is their upper edge. Negative values (frees without allocations) have no
 * height.
 */
export function layersOf(kinds: readonly KindCurve[]): Layer[] {
  const order = Object.keys(MEMORY_KINDS);
  const layers: Layer[] = [];
  for (const { kind, bytes, peak_bytes: peak } of kinds.toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind))) {
    const below = layers.at(-1)?.top;
    layers.push({ kind, bytes, peak, top: bytes.map((value, at) => (below?.[at] ?? 0) + Math.max(value, 0)) });
  }
  return layers;
}
