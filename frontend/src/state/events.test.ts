import { expect, it, vi } from 'vitest';
import { eventRow } from '../testing/fixtures';
import { Refusal, serve, type TestServer } from '../testing/server';
import { eventTable } from './events';

const KEY = { run: 'r', worker: 'w', span: '1' };

/** 250 events whose start is their number, in the requested order. */
function serveEvents(): TestServer {
  return serve({
    events: (query) => {
      const offset = Number(query.get('offset'));
      const rows = Array.from({ length: 250 }, (_, index) => eventRow({ start_ns: index }));
      if (query.get('sort')?.startsWith('-')) rows.reverse();
      return { total: rows.length, offset, rows: rows.slice(offset, offset + Number(query.get('limit'))) };
    },
  });
}

it('fetches the pages in sight, each once', async () => {
  const server = serveEvents();
  const table = eventTable(KEY, 'f');
  table.need(0, 20);
  table.need(5, 30);
  await vi.waitFor(() => expect(table.total.value).toBe(250));
  expect(server.asked).toEqual(['events?run=r&worker=w&span=1&finding=f&offset=0&limit=100&sort=start']);
  table.need(90, 110);
  await vi.waitFor(() => expect(table.row(110)?.start_ns).toBe(110));
  expect(table.row(249)).toBeNull();
});

it('lets the server sort, and drops what it had', async () => {
  serveEvents();
  const table = eventTable(KEY, 'f');
  table.need(0, 20);
  await vi.waitFor(() => expect(table.row(0)?.start_ns).toBe(0));
  table.sortBy('start');
  expect(table.sort.value).toEqual({ column: 'start', descending: true });
  expect(table.row(0)).toBeNull();
  await vi.waitFor(() => expect(table.row(0)?.start_ns).toBe(249));
});

it('sorts durations longest first', () => {
  serveEvents();
  const table = eventTable(KEY, 'f');
  table.sortBy('duration');
  expect(table.sort.value).toEqual({ column: 'duration', descending: true });
});

it('tells an error, and asks again', async () => {
  const server = serve({ events: () => { throw new Refusal(404, 'Gone.', 'Reload.'); } });
  const table = eventTable(KEY, 'f');
  table.need(0, 20);
  await vi.waitFor(() => expect(table.error.value?.message).toBe('Gone.'));
  table.need(0, 20);
  await vi.waitFor(() => expect(server.asked.length).toBe(2));
});

it('adds pages to those that are there, and keeps them in sight while it asks again', async () => {
  const server = serveEvents();
  const table = eventTable(KEY, 'f');
  table.need(0, 20);
  table.need(150, 160);
  await vi.waitFor(() => expect([table.row(0)?.start_ns, table.row(150)?.start_ns]).toEqual([0, 150]));
  table.refresh();
  expect(table.row(0)?.start_ns).toBe(0);
  await vi.waitFor(() => expect(server.asked.length).toBe(4));
});

it('asks again for the page that failed', async () => {
  const server = serveEvents();
  const answer = server.answers['events'];
  const table = eventTable(KEY, 'f');
  table.need(0, 0);
  await vi.waitFor(() => expect(table.row(0)?.start_ns).toBe(0));
  server.answers['events'] = () => { throw new Refusal(500, 'No.', ''); };
  table.need(120, 130);
  await vi.waitFor(() => expect(table.failed.value).toBe(true));
  if (answer) server.answers['events'] = answer;
  table.refresh();
  await vi.waitFor(() => expect(table.row(120)?.start_ns).toBe(120));
  expect(table.failed.value).toBe(false);
});
