/** Causes of an outlier, in words. */

import { partName } from './lanes';

export type CauseKind = 'wait' | 'part' | 'operator' | 'kernel';
export const CAUSES: Record<CauseKind, string> = { wait: 'Wait', part: 'Part of the step', operator: 'Operator, self time', kernel: 'Kernel' };

const WAITS = new Map([
  ['data_loading', 'Data'], ['garbage_collection', 'Python garbage collection'], ['compilation', 'Compilation'],
  ['allocator', 'Memory from the driver'], ['synchronisation', 'The device'],
]);

/** A cause, in the page's words; parts come with their lane: `host data_loading`. */
export function causeName({ kind, name }: { kind: CauseKind; name: string }): string {
  if (kind === 'wait') return WAITS.get(name) ?? name.replaceAll('_', ' ');
  const space = name.indexOf(' ');
  return kind === 'part' && space > 0 ? `${partName(name.slice(space + 1))} (${name.slice(0, space)})` : name;
}
