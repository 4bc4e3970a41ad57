/** The kernels of the profile on the screen: one table per filter and family. */

import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { getKernels } from '../api/client';
import type { DeviceKernelRow, KernelsAnswer } from '../api/types.gen';
import { kernelDescendsFirst, type Family, type KernelColumn } from '../base/kernels';
import { shownReload, shownVersion } from './answers';
import { pagedTable, usePages, type PagedTable } from './paging';
import { selectedKey } from './runs';
import { typedText } from './typed';

export type KernelTable = PagedTable<DeviceKernelRow, KernelColumn, KernelsAnswer>;

export const filter = typedText();
export const family = signal<Family | ''>('');

export function useKernels(): KernelTable | null {
  const of = shownVersion();
  const text = filter.settled.value;
  const only = family.value;
  const reload = shownReload();
  const table = useMemo(() => {
    const key = selectedKey.peek();
    if (!key || !of) return null;
    return pagedTable<DeviceKernelRow, KernelColumn, KernelsAnswer>({
      ask: (slot, given) => getKernels({ ...key, ...slot, ...(text && { filter: text }), ...(only && { family: only }) }, given),
      sort: { column: 'total_ns', descending: true }, descends: kernelDescendsFirst,
    });
  }, [of, text, only]);
  usePages(table);
  useEffect(() => { if (reload !== null && (table?.said.peek() || table?.failed.peek())) table.refresh(); }, [reload]);
  return table;
}
