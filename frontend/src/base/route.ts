/** What the address says: which profile, which view, which finding. */

import { NO_SIDE, type Side, type Sides } from './sides';

export const SORTS = ['saving', 'safe', 'cost', 'matches', 'file'] satisfies string[];
export type Sort = 'saving' | 'safe' | 'cost' | 'matches' | 'file';
/** How the list is cut into groups. */
export type Group = 'none' | 'check' | 'file' | 'severity';
export type View = 'overview' | 'findings' | 'operators' | 'modules' | 'memory' | 'cpu' | 'source' | 'timeline' | 'ranks' | 'compare';
export type Grouping = 'name' | 'shape' | 'line' | 'module';

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
  group: Group;
  /** Whether only findings in the user's own code are listed. */
  own: boolean;
  /** Name of the step that the overview shows; empty for the average of all. */
  step: string;
  /** How operators are grouped, and the key of the open row. */
  by: Grouping;
  op: string;
  /** Id of the event that is marked, and the window of the timeline in ns, `from-to`. */
  event: string;
  win: string;
  compare: Sides;
}

export const START: Route = {
  run: '', worker: '', span: '', view: 'findings', finding: '', file: '', line: '', q: '', sort: 'saving', group: 'none', own: false,
  step: '', by: 'name', op: '', event: '', win: '', compare: { base: NO_SIDE, candidate: NO_SIDE },
};

/** The route in the address's keys; unknown and missing values become the defaults. */
export function routeFrom(keys: Record<string, string>): Route {
  return {
    run: keys['run'] ?? '',
    worker: keys['worker'] ?? '',
    span: keys['span'] ?? '',
    view: viewFrom(keys['view'] ?? ''),
    finding: keys['finding'] ?? '',
    file: keys['file'] ?? '',
    line: keys['line'] ?? '',
    q: keys['q'] ?? '',
    sort: sortFrom(keys['sort'] ?? ''),
    group: groupFrom(keys['group'] ?? ''),
    own: keys['own'] === '1',
    step: keys['step'] ?? '',
    by: groupingFrom(keys['by'] ?? ''),
    op: keys['op'] ?? '',
    event: keys['event'] ?? '',
    win: keys['win'] ?? '',
    compare: { base: sideFrom(keys, BASE_KEYS), candidate: sideFrom(keys, CANDIDATE_KEYS) },
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
    group: route.group === START.group ? null : route.group,
    own: route.own ? '1' : null,
    step: route.view === 'overview' && route.step ? route.step : null,
    by: route.view === 'operators' && route.by !== START.by ? route.by : null,
    op: route.view === 'operators' && route.op ? route.op : null,
    event: WITH_EVENT.has(route.view) && route.event ? route.event : null,
    win: route.view === 'timeline' && route.win ? route.win : null,
    ...sideKeys(route, 'base', BASE_KEYS),
    ...sideKeys(route, 'candidate', CANDIDATE_KEYS),
  };
}

const WITH_EVENT = new Set<View>(['findings', 'timeline']);

/**
 * The changes, and what they make meaningless: an event and a window belong to a profile, an event also to the finding
 * that it was chosen in.
 */
export function withConsequences(before: Route, changes: Partial<Route>): Partial<Route> {
  const differs = (...keys: (keyof Route)[]): boolean => keys.some((key) => key in changes && changes[key] !== before[key]);
  if (differs('run', 'worker', 'span')) return { event: '', win: '', ...changes };
  return differs('finding') ? { event: '', ...changes } : changes;
}

/** As on the command line: `compare BASE CANDIDATE --steps 3-7 --with 8-12`. */
const BASE_KEYS: Record<keyof Side, string> = { run: 'cmp', rank: 'cmp_rank', span: 'cmp_span', steps: 'steps' };
const CANDIDATE_KEYS: Record<keyof Side, string> = { run: 'with', rank: 'with_rank', span: 'with_span', steps: 'with_steps' };
const ROOT = '.'; // the run of the logdir itself has no name, and an empty key would be none

function sideFrom(keys: Record<string, string>, names: Record<keyof Side, string>): Side {
  const run = keys[names.run] || null;
  return { run: run === ROOT ? '' : run, rank: keys[names.rank] ?? '', span: keys[names.span] ?? '', steps: keys[names.steps] ?? '' };
}

function sideKeys({ view, compare }: Route, of: keyof Sides, names: Record<keyof Side, string>): Record<string, string | null> {
  const { run, rank, span, steps } = view === 'compare' ? compare[of] : NO_SIDE;
  return { [names.run]: run === '' ? ROOT : run, [names.rank]: rank || null, [names.span]: span || null, [names.steps]: steps || null };
}

export function sortFrom(text: string): Sort {
  switch (text) {
    case 'safe': case 'cost': case 'matches': case 'file': return text;
    default: return 'saving';
  }
}

export function groupFrom(text: string): Group {
  switch (text) {
    case 'check': case 'file': case 'severity': return text;
    default: return 'none';
  }
}

export function viewFrom(text: string): View {
  switch (text) {
    case 'overview': case 'operators': case 'modules': case 'memory': case 'cpu': case 'source': case 'timeline': case 'ranks': case 'compare': return text;
    default: return 'findings';
  }
}

export function groupingFrom(text: string): Grouping {
  switch (text) {
    case 'shape': case 'line': case 'module': return text;
    default: return 'name';
  }
}
