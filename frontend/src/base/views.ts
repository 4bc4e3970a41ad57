/** The views of the page: the one table that the router, the tabs, the keys and the help are made of. */

interface ViewSpec {
  id: string;
  /** On its tab. */
  label: string;
  /** A key that leads there, and what the help says of it. */
  shortcut?: { key: string; does: string };
  /** A filter stands above it, to which `/` leads. */
  hasFilter?: boolean;
  /** It is there only where there are several runs. */
  ofRuns?: boolean;
  /** It is there only where a run has several ranks. */
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

/** Whether a filter stands above a view. */
export const hasFilter = (view: View): boolean => VIEWS.some(({ id, hasFilter: has }) => id === view && has);
