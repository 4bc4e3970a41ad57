/** The views of the page: the single table for the router, the tabs, the keys and the help. */

interface ViewSpec {
  id: string;
  /** Label of its tab. */
  label: string;
  /** The key that opens it, and its description in the help. */
  shortcut?: { key: string; does: string };
  /** True if it has a filter, which `/` focuses. */
  hasFilter?: boolean;
  /** Shown only with several runs. */
  ofRuns?: boolean;
  /** Shown only for a run with several ranks. */
  ofRanks?: boolean;
}

const TABLE = [
  { id: 'runs', label: 'All runs', shortcut: { key: 'r', does: 'To all runs' }, ofRuns: true },
  { id: 'overview', label: 'Overview' },
  { id: 'findings', label: 'Findings', hasFilter: true },
  { id: 'operators', label: 'Operators', hasFilter: true },
  { id: 'kernels', label: 'Kernels', hasFilter: true },
  { id: 'roofline', label: 'Roofline' },
  { id: 'modules', label: 'Modules' },
  { id: 'memory', label: 'Memory' },
  { id: 'cpu', label: 'CPU' },
  { id: 'flame', label: 'Flame graph', hasFilter: true },
  { id: 'timeline', label: 'Timeline', shortcut: { key: 't', does: 'To the timeline' } },
  { id: 'source', label: 'Source', shortcut: { key: 's', does: 'Show the whole source file' } },
  { id: 'ranks', label: 'Ranks', ofRanks: true },
  { id: 'compare', label: 'Compare', shortcut: { key: 'c', does: 'Compare with another recording' } },
] as const satisfies readonly ViewSpec[];

export type View = (typeof TABLE)[number]['id'];
export const VIEWS: readonly (ViewSpec & { id: View })[] = TABLE;

/** True if a view has a filter. */
export const hasFilter = (view: View): boolean => VIEWS.some(({ id, hasFilter: has }) => id === view && has);

/**
 * Why a view shows nothing of a recording with these data, by view: the reasons that are known before its tables. A
 * memory snapshot belongs to a device, and operators with shapes are dots of the roofline.
 */
export function emptyViews(recorded: readonly string[]): Partial<Record<View, string>> {
  const has = (what: string): boolean => recorded.includes(what);
  return {
    ...(!has('device') && { kernels: 'No work of a device was recorded' }),
    ...(!has('device') && !has('shapes') && { roofline: 'Neither shapes nor work of a device were recorded' }),
    ...(!has('device') && !has('memory') && { memory: 'No memory events were recorded' }),
    ...(!has('stacks') && { modules: 'No Python stacks were recorded' }),
  };
}
