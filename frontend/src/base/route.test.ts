import { expect, it } from 'vitest';
import { routeFrom, routeKeys, START, type Route } from './route';

it('reads an empty address as the start', () => {
  expect(routeFrom({})).toEqual(START);
});

it('leaves no trace of defaults in the address', () => {
  expect(Object.values(routeKeys(START)).every((value) => value === null)).toBe(true);
});

it('round-trips', () => {
  const route = { run: 'r', worker: 'w', span: '1', view: 'source', finding: 'f', file: '/a.py', line: '7', q: 'x', sort: 'cost', step: '', by: 'name', op: '' } satisfies object;
  const keys = Object.fromEntries(Object.entries(routeKeys(routeFrom(route))).map(([key, value]) => [key, value ?? '']));
  expect(routeFrom(keys)).toEqual(route);
});

it('keeps file and line out of the address of the list', () => {
  expect(routeKeys({ ...START, file: '/a.py', line: '7' })).toMatchObject({ file: null, line: null });
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
