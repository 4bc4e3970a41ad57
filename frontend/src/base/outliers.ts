/** Causes of an outlier, in words. */

import { capital } from './words';

export type CauseKind = 'wait' | 'entry' | 'operator' | 'kernel';
export const CAUSES: Record<CauseKind, string> = { wait: 'Wait', entry: 'Part of the step', operator: 'Operator, self time', kernel: 'Kernel' };

/** A cause as it begins a line. */
export const causeName = ({ kind, title }: { kind: CauseKind; title: string }): string => (kind === 'wait' ? capital(title) : title);
