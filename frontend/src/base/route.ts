/** What the address says: which profile, which view, which finding. */

export const SORTS = ['saving', 'safe', 'cost', 'matches', 'file'] satisfies string[];
export type Sort = 'saving' | 'safe' | 'cost' | 'matches' | 'file';
export type View = 'findings' | 'source';

export interface Route {
  run: string;
  worker: string;
  span: string;
  view: View;
  finding: string;
  /** File and line shown in the source view. */
  file: string;
  line: string;
  q: string;
  sort: Sort;
}

export const START: Route = {
  run: '', worker: '', span: '', view: 'findings', finding: '', file: '', line: '', q: '', sort: 'saving',
};

/** The route in the address's keys; unknown and missing values become the defaults. */
export function routeFrom(keys: Record<string, string>): Route {
  return {
    run: keys['run'] ?? '',
    worker: keys['worker'] ?? '',
    span: keys['span'] ?? '',
    view: keys['view'] === 'source' ? 'source' : 'findings',
    finding: keys['finding'] ?? '',
    file: keys['file'] ?? '',
    line: keys['line'] ?? '',
    q: keys['q'] ?? '',
    sort: sortFrom(keys['sort'] ?? ''),
  };
}

/** All keys of a route for the address; null removes one, so that defaults leave no trace there. */
export function routeKeys(route: Route): Record<string, string | null> {
  return {
    run: route.run || null,
    worker: route.worker || null,
    span: route.span || null,
    view: route.view === START.view ? null : route.view,
    finding: route.finding || null,
    file: route.view === 'source' && route.file ? route.file : null,
    line: route.view === 'source' && route.line ? route.line : null,
    q: route.q || null,
    sort: route.sort === START.sort ? null : route.sort,
  };
}

export function sortFrom(text: string): Sort {
  switch (text) {
    case 'safe': case 'cost': case 'matches': case 'file': return text;
    default: return 'saving';
  }
}
