import { expect, it } from 'vitest';
import { routeFrom, routeKeys, START, type Route, withConsequences } from './route';
import { VIEWS } from './views';

/** As the address gives them back. */
const strings = (keys: Record<string, string | null>): Record<string, string> =>
  Object.fromEntries(Object.entries(keys).flatMap(([key, value]) => (value === null ? [] : [[key, value]])));

it('reads an empty address as the start', () => {
  expect(routeFrom({})).toEqual(START);
});

it('leaves no trace of defaults in the address', () => {
  expect(Object.values(routeKeys(START)).every((value) => value === null)).toBe(true);
});

it('round-trips', () => {
  const route = { compare: START.compare, run: 'r', worker: 'w', span: '1', view: 'source', finding: 'f', file: '/a.py', line: '7', q: 'x', sort: 'cost', group: 'file', own: true, step: '', by: 'name', op: '', event: '', win: '', at: '', folded: '', pinned: '', weight: 'account', node: '', entry: '' } satisfies Route;
  expect(routeFrom(strings(routeKeys(route)))).toEqual(route);
});

it('has the event and the window where the timeline is', () => {
  const route: Route = { ...START, event: '17', win: '5-90', at: '12', folded: '2,5', pinned: '1', weight: 'account', node: '', entry: '' };
  expect(routeKeys(route)).toMatchObject({ event: '17', win: null });
  expect(routeKeys({ ...route, view: 'timeline' })).toMatchObject({ event: '17', win: '5-90', at: '12', folded: '2,5', pinned: '1' });
  expect(routeKeys({ ...route, view: 'cpu' })).toMatchObject({ event: null, win: null, at: null, folded: null, pinned: null });
});

it('forgets an event with its finding, and a window with its profile', () => {
  const route: Route = { ...START, run: 'a', finding: 'f', event: '17', win: '5-90' };
  expect(withConsequences(route, { finding: 'g' })).toEqual({ finding: 'g', event: '', node: '', file: '', line: '' });
  expect(withConsequences(route, { finding: 'f', view: 'timeline' })).toEqual({ finding: 'f', view: 'timeline' });
  expect(withConsequences(route, { finding: 'g', event: '3' })).toEqual({ finding: 'g', event: '3', node: '', file: '', line: '' });
  expect(withConsequences(route, { run: 'b' })).toEqual({ run: 'b', event: '', win: '', at: '', folded: '', pinned: '', node: '' });
});

it('keeps file and line out of the address of the list', () => {
  expect(routeKeys({ ...START, file: '/a.py', line: '7' })).toMatchObject({ file: null, line: null });
});

it('reads every view by its name', () => {
  const named = VIEWS.map(({ id }) => id);
  expect(named.map((view) => routeFrom(strings(routeKeys({ ...START, view }))).view)).toEqual(named);
});

it('does not trust views and orders typed by hand', () => {
  expect(routeFrom({ view: 'nonsense', sort: 'constructor' })).toMatchObject({ view: 'findings', sort: 'saving' });
});

it('keeps what a view shows in the address of that view alone', () => {
  const route: Route = { ...START, step: 'ProfilerStep#3', by: 'shape', op: 'aten::mm' };
  expect(routeKeys({ ...route, view: 'overview' })).toMatchObject({ view: 'overview', step: 'ProfilerStep#3', by: null, op: null });
  expect(routeKeys({ ...route, view: 'operators' })).toMatchObject({ view: 'operators', step: null, by: 'shape', op: 'aten::mm' });
  expect(routeFrom({ view: 'operators', by: 'shape', op: 'aten::mm' })).toMatchObject({ view: 'operators', by: 'shape', op: 'aten::mm' });
  expect(routeFrom({ by: 'toString' }).by).toBe('name');
});

it('names both sides of a comparison as the command line does, and the run without a name by a dot', () => {
  const route: Route = {
    ...START, view: 'compare', compare: { base: { run: '', rank: '', span: '', steps: '3-7' }, candidate: { run: 'new', rank: 'host_1', span: '9', steps: '' } },
  };
  const keys = strings(routeKeys(route));
  expect(keys).toEqual({ view: 'compare', cmp: '.', steps: '3-7', with: 'new', with_rank: 'host_1', with_span: '9' });
  expect(routeFrom(keys)).toEqual(route);
  expect(routeKeys({ ...route, view: 'findings' })).toMatchObject({ cmp: null, with: null, steps: null });
});
