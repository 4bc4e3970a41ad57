/** Causes of an outlier, in words. */

export type CauseKind = 'wait' | 'entry' | 'operator' | 'kernel';
export const CAUSES: Record<CauseKind, string> = { wait: 'Wait', entry: 'Part of the step', operator: 'Operator, self time', kernel: 'Kernel' };

const WAITS = new Map([
  ['data_loading', 'Data'], ['garbage_collection', 'Python garbage collection'], ['compilation', 'Compilation'],
  ['allocator', 'Memory from the driver'], ['synchronisation', 'The device'],
]);

/** A cause, in the page's words; entries come with their titles. */
export const causeName = ({ kind, name }: { kind: CauseKind; name: string }): string =>
  (kind === 'wait' ? WAITS.get(name) ?? name.replaceAll('_', ' ') : name);
