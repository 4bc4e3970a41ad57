/** Content of the address: profile, view, finding. */

import type { Side, Sides } from './sides';
import { VIEWS, type View } from './views';

type Keys = Record<string, string>;
type Written = Record<string, string | null>;

/** Form of one value in the address, under its name. An unreadable value is the default, which is absent there. */
interface Field<V> {
  read: (keys: Keys, name: string) => V;
  write: (value: V, name: string) => Written;
  /** The views whose address has it; all without any. */
  views: readonly View[];
}

const text = (...views: View[]): Field<string> => ({
  views, read: (keys, name) => keys[name] ?? '', write: (value, name) => ({ [name]: value || null }),
});

const flag = (...views: View[]): Field<boolean> => ({
  views, read: (keys, name) => keys[name] === '1', write: (value, name) => ({ [name]: value ? '1' : null }),
});

/** One of a few words, by default the first. */
const word = <W extends string>([first, ...others]: readonly [W, ...W[]], ...views: View[]): Field<W> => ({
  views, read: (keys, name) => others.find((each) => each === keys[name]) ?? first, write: (value, name) => ({ [name]: value === first ? null : value }),
});

/** As on the command line: `compare BASE CANDIDATE --steps 3-7 --with 8-12`. */
const BASE_KEYS: Record<keyof Side, string> = { run: 'cmp', rank: 'cmp_rank', span: 'cmp_span', steps: 'steps' };
const CANDIDATE_KEYS: Record<keyof Side, string> = { run: 'with', rank: 'with_rank', span: 'with_span', steps: 'with_steps' };
const ROOT = '.'; // the run of the logdir itself has no name, and an empty key would look like none

const SIDES: Field<Sides> = {
  views: ['compare'],
  read: (keys) => ({ base: sideFrom(keys, BASE_KEYS), candidate: sideFrom(keys, CANDIDATE_KEYS) }),
  write: ({ base, candidate }) => ({ ...sideKeys(base, BASE_KEYS), ...sideKeys(candidate, CANDIDATE_KEYS) }),
};

function sideFrom(keys: Keys, names: Record<keyof Side, string>): Side {
  const run = keys[names.run] || null;
  return { run: run === ROOT ? '' : run, rank: keys[names.rank] ?? '', span: keys[names.span] ?? '', steps: keys[names.steps] ?? '' };
}

const sideKeys = ({ run, rank, span, steps }: Side, names: Record<keyof Side, string>): Written => ({
  [names.run]: run === '' ? ROOT : run, [names.rank]: rank || null, [names.span]: span || null, [names.steps]: steps || null,
});

const FIELDS = {
  run: text(),
  worker: text(),
  span: text(),
  view: word<View>(['findings', ...VIEWS.map(({ id }) => id)]),
  finding: text(),
  /** File and line in the source view. */
  file: text('source'),
  line: text('source'),
  q: text(),
  sort: word(['saving', 'safe', 'cost', 'matches', 'file']),
  /** The grouping of the list. */
  group: word(['none', 'check', 'file', 'severity']),
  /** True to list only findings in the user's own code. */
  own: flag(),
  /** Name of the step in the overview; empty for the average of all. */
  step: text('overview'),
  /** The grouping of operators, and the key of the open row. */
  by: word(['name', 'shape', 'line', 'module'], 'operators'),
  op: text('operators'),
  /** Id of the marked event, and the window of the timeline in ns, `from-to`. */
  event: text('findings', 'timeline'),
  win: text('timeline'),
  /** The time in ns whose idle gap the timeline explains, and the numbers of its folded and pinned lanes: `2,5`. */
  at: text('timeline'),
  folded: text('timeline'),
  pinned: text('timeline'),
  /** The unit of the flame graph's widths, the zoomed node, and the entry of the account to which it is limited. */
  weight: word(['account', 'device', 'idle', 'host', 'bytes'], 'flame', 'compare'),
  node: text('flame'),
  entry: text('flame'),
  compare: SIDES,
};

export type Route = { [Name in keyof typeof FIELDS]: ReturnType<(typeof FIELDS)[Name]['read']> };
export type Sort = Route['sort'];
export type Group = Route['group'];
export type Grouping = Route['by'];

const CODEC: { [Name in keyof Route]: Field<Route[Name]> } = FIELDS;
const isName = (name: string): name is keyof Route => name in CODEC;
const NAMES = Object.keys(CODEC).filter(isName);

/** The route in the address's keys; unknown and missing values become the defaults. */
export const routeFrom = (keys: Keys): Route => Object.assign({}, ...NAMES.map((name) => ({ [name]: CODEC[name].read(keys, name) })));

export const START = routeFrom({});

/** All keys of a route for the address; null removes one, so that defaults do not appear there. */
export const routeKeys = (route: Route): Written => Object.assign({}, ...NAMES.map((name) => keysOf(name, route)));

/** Settings of a view appear only in the address of that view. */
function keysOf<Name extends keyof Route>(name: Name, route: Route): Written {
  const { views, write } = CODEC[name];
  return write(views.length === 0 || views.includes(route.view) ? route[name] : START[name], name);
}

/**
 * The changes, and the values that they invalidate: an event and a window belong to a profile, an event also to the
 * finding that it was selected in. Source opens at the place of another finding.
 */
export function withConsequences(before: Route, changes: Partial<Route>): Partial<Route> {
  const differs = (...keys: (keyof Route)[]): boolean => keys.some((key) => key in changes && changes[key] !== before[key]);
  if (differs('run', 'worker', 'span')) return { event: '', win: '', at: '', folded: '', pinned: '', node: '', ...changes };
  if (differs('finding')) return { event: '', node: '', file: '', line: '', ...changes };
  return differs('entry') ? { node: '', ...changes } : changes;
}
