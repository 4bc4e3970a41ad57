import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, expect, it, vi } from 'vitest';
import type { Ledger, TimelineEvent } from '../api/types.gen';
import { gutterOf } from '../base/timelineLayout';
import { eventRow, finding, ledger, ledgerEntry, noAccount, report, state, timelineEvent, timelineLanes } from '../testing/fixtures';
import { effects, key, openPage } from '../testing/page';
import { Refusal, serveProfile, type TestServer } from '../testing/server';

const NO_BARS = { lane: [], depth: [], start_ns: [], duration_ns: [], busy_ns: [], events: [], id: [], name: [], category: [], marked: [] };
const NO_ARROWS = { from_lane: [], from_depth: [], from_ns: [], to_lane: [], to_depth: [], to_ns: [], left_out: 0 };
const ROWS = Array.from({ length: 3 }, (_, at) => eventRow({ id: 10 + at, start_ns: 1_000_000 * (at + 1), duration_ns: 2000 }));

afterEach(cleanup);

/** One finding `a` with three matched events, ids 10 to 12. */
function serveTimeline(event: Partial<TimelineEvent> = {}, account: Ledger = noAccount()): TestServer {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
  const server = serveProfile(report({ findings: [finding('a', { matches: 3 }), finding('b')], ledger: account }), state());
  Object.assign(server.answers, {
    events: () => ({ total: 3, offset: 0, rows: ROWS }),
    'timeline/lanes': () => timelineLanes(),
    timeline: (query: URLSearchParams) => ({
      from_ns: Number(query.get('from_ns')), to_ns: Number(query.get('to_ns')), pixel_ns: 1, names: [], bars: NO_BARS, arrows: NO_ARROWS, left_out: 0,
    }),
    'timeline/event': (query: URLSearchParams) => {
      const row = ROWS.find(({ id }) => String(id) === query.get('event'));
      if (!row) throw new Refusal(404, 'This profile has no such event, or it is not drawn.', 'Reload the report.');
      return timelineEvent({ id: row.id, start_ns: row.start_ns, duration_ns: row.duration_ns, ...event });
    },
    'timeline/marks': () => ({ total: 3, start_ns: [1_000_000], events: [3], first: [10] }),
  });
  return server;
}

const strip = (): Promise<HTMLElement> => screen.findByRole('application', { name: /Timeline around a matched event/ });
const askedFor = (server: TestServer, route: string): string[] => server.asked.filter((each) => each.startsWith(`${route}?`));

it('shows the first matched event with twice its length on each side', async () => {
  const server = serveTimeline();
  await openPage();
  expect((await strip()).getAttribute('aria-label')).toContain('aten::item, operator, 2 µs, starts at 1.000 ms, Thread 1');
  await waitFor(() => expect(askedFor(server, 'timeline').length).toBeGreaterThan(0));
  const first = new URLSearchParams(askedFor(server, 'timeline')[0]?.split('?')[1]);
  expect(first.get('finding')).toBe('a');
  expect(first.get('lanes')).toBe('0,1');
  expect(Number(first.get('from_ns'))).toBeLessThanOrEqual(996_000);
});

it('goes from match to match by brackets, and the address and the row go along', async () => {
  serveTimeline();
  await openPage();
  const timeline = await strip();
  await effects();
  key(']', timeline);
  await waitFor(() => expect(window.location.hash).toContain('event=11'));
  await waitFor(async () => expect((await strip()).getAttribute('aria-label')).toContain('starts at 2.000 ms'));
  expect(screen.getByText('event 2 of 3')).toBeTruthy();
  key('[', await strip());
  await waitFor(() => expect(window.location.hash).toContain('event=10'));
});

it('opens at the event that a link names', async () => {
  serveTimeline();
  await openPage('p.torchtidy.finding=a&p.torchtidy.event=12');
  await waitFor(async () => expect((await strip()).getAttribute('aria-label')).toContain('starts at 3.000 ms'));
  expect(await screen.findByText('event 3 of 3')).toBeTruthy();
});

it('says that an event is not there, and keeps its keys to itself', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline&p.torchtidy.event=99');
  expect(await screen.findByText('This profile has no such event, or it is not drawn.')).toBeTruthy();
  const whole = await screen.findByRole('application', { name: /^Timeline: 300 events in 3 ms, 1 thread, 1 stream, 2 steps/ });
  await effects();
  key('s', whole); // elsewhere: show the source
  expect(window.location.hash).toContain('view=timeline');
});

it('zooms and moves by keys, and the address has the window once it rests', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline&p.torchtidy.win=1000000-2000000');
  const whole = await screen.findByRole('application');
  await effects();
  key('w', whole);
  await waitFor(() => expect(window.location.hash).toContain('win=1100000-1900000'));
  key('d', whole);
  await waitFor(() => expect(window.location.hash).toContain('win=1260000-2060000'));
  key('End', whole);
  await waitFor(() => expect(window.location.hash).toContain('win=2200000-3000000'));
  key('0', whole);
  await waitFor(() => expect(window.location.hash).toContain('win=0-3000000'));
});

it('forgets a window that did not come to rest before the view was left', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline&p.torchtidy.win=1000000-2000000');
  const { go } = await import('../state/route');
  const whole = await screen.findByRole('application');
  await effects();
  key('w', whole);
  go({ view: 'overview' }, 'push');
  await effects();
  go({ view: 'timeline', win: '0-500000' }, 'push');
  await new Promise((done) => { setTimeout(done, 1000); }); // twice what a window takes to come to rest
  expect(window.location.hash).toContain('win=0-500000');
});

it('tells what is known of an event, and leads to those it is tied to', async () => {
  serveTimeline({ launched: 2, launched_ns: 5000, inside: { id: 11, name: 'train.py(3): step', start_ns: 0, duration_ns: 9, lane: 1 } });
  await openPage('p.torchtidy.view=timeline&p.torchtidy.event=10');
  const facts = await screen.findByRole('region', { name: 'The marked event' });
  expect(facts.textContent).toContain('2 kernels and copies of 5 µs');
  screen.getByRole('button', { name: 'train.py(3): step' }).click();
  await waitFor(() => expect(window.location.hash).toContain('event=11'));
});

it('names the operator of a replayed kernel, and how it is known', async () => {
  serveTimeline({ operator: { id: 11, name: 'aten::mm', start_ns: 0, duration_ns: 2, lane: 1 }, known_by: 'renamed' });
  await openPage('p.torchtidy.view=timeline&p.torchtidy.event=10');
  const facts = await screen.findByRole('region', { name: 'The marked event' });
  expect(facts.textContent).toContain('Operatoraten::mmFrom captureby its place');
  screen.getByRole('button', { name: 'aten::mm' }).click();
  await waitFor(() => expect(window.location.hash).toContain('event=11'));
});

it('sends nothing before it has said where to and the user has agreed', async () => {
  const server = serveTimeline();
  const open = vi.fn<typeof window.open>(() => null);
  vi.stubGlobal('open', open);
  await openPage('p.torchtidy.view=timeline');
  (await screen.findByRole('button', { name: 'Open in Perfetto…' })).click();
  expect((await screen.findByRole('group', { name: 'Open in Perfetto' })).textContent).toContain('a page of a third party');
  expect(open).not.toHaveBeenCalled();
  screen.getByRole('button', { name: 'Open ui.perfetto.dev' }).click();
  expect(await screen.findByText(/The browser has blocked the new tab/)).toBeTruthy();
  expect(askedFor(server, 'timeline/trace')).toEqual([]);
});

it('finds events by name, one after the other, and says which of how many', async () => {
  const server = serveTimeline();
  server.answers['timeline/found'] = (query) => (query.get('q') === 'item'
    ? { total: 3, ...(query.get('event') === '10' ? { index: 1, event: 11 } : { index: 0, event: 10 }) } : { total: 0, index: null, event: null });
  await openPage('torchtidy&p.torchtidy.view=timeline');
  const input = await screen.findByRole('searchbox', { name: 'Find events' });
  fireEvent.input(input, { target: { value: 'item' } });
  fireEvent.click(await screen.findByRole('button', { name: 'Next' }));
  expect(await screen.findByText('1 of 3')).toBeTruthy();
  await waitFor(() => expect(window.location.hash).toContain('event=10'));
  fireEvent.submit(await screen.findByRole('search'));
  expect(await screen.findByText('2 of 3')).toBeTruthy();
  await waitFor(() => expect(window.location.hash).toContain('event=11'));
  fireEvent.click(screen.getByRole('button', { name: 'Previous' }));
  await waitFor(() => expect(askedFor(server, 'timeline/found').at(-1)).toContain('direction=previous'));
  fireEvent.input(input, { target: { value: 'nothing' } });
  fireEvent.click(await screen.findByRole('button', { name: 'Next' }));
  expect(await screen.findByText('No event has this name')).toBeTruthy();
  expect(within(screen.getByRole('list', { name: 'Colours' })).getAllByRole('listitem').length).toBe(8);
});

const click = (target: Element, clientX: number, clientY: number): void => {
  fireEvent.pointerDown(target, { button: 0, pointerId: 1, clientX, clientY });
  fireEvent.pointerUp(target, { button: 0, pointerId: 1, clientX, clientY });
};
const [THREAD_Y, STREAM_Y] = [70, 45]; // in the first row of each

it('folds a lane by its name and by keys, and the address keeps it', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline');
  const whole = await screen.findByRole('application');
  await effects();
  const height = whole.style.height;
  click(whole, 10, THREAD_Y);
  await waitFor(() => expect(window.location.hash).toContain('folded=1'));
  await waitFor(() => expect(whole.style.height).not.toBe(height));
  key('f', whole); // no event is marked: all lanes
  await waitFor(() => expect(window.location.hash).not.toContain('folded'));
  expect(whole.style.height).toBe(height);
});

it('pins a lane by its pin and by keys, and the address keeps it', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline');
  const whole = await screen.findByRole('application');
  await effects();
  click(whole, gutterOf(whole.clientWidth) - 5, THREAD_Y);
  await waitFor(() => expect(window.location.hash).toContain('pinned=1'));
  expect(window.location.hash).not.toContain('folded');
  await screen.findByText(/: pinned to the top/);
  key('p', whole); // no event is marked: all lanes scroll
  await waitFor(() => expect(window.location.hash).not.toContain('pinned'));
});

it('unfolds the lane of an event that a link names', async () => {
  serveTimeline();
  await openPage('p.torchtidy.view=timeline&p.torchtidy.folded=1&p.torchtidy.event=10');
  await waitFor(() => expect(window.location.hash).not.toContain('folded'));
});

const idlePart = (entry: string, ns: number) => ({ entry, ns, call: { id: 11, name: 'aten::item' }, work: { id: 12, name: 'relu' } });

it('says why a device idles where a gap is clicked, how that is known and what to do', async () => {
  const server = serveTimeline({}, ledger([
    ledgerEntry('host_work', null, [700], { proof: 'silent', proof_text: 'no thread launched anything for a while', advice: 'Move it out of the step.' }), ledgerEntry('compute', 'matrix', [300]),
  ]));
  server.answers.idle = () => ({
    accounted: true, least_ns: 0, gap: { start_ns: 0, end_ns: 700, parts: [idlePart('host_work', 600), idlePart('launch_latency', 100)] },
  });
  await openPage('p.torchtidy.view=timeline');
  const whole = await screen.findByRole('application');
  await effects();
  click(whole, 76, STREAM_Y);
  const said = await screen.findByRole('region', { name: 'Why the device idles' });
  expect(said.textContent).toContain('No device works for 700 ns');
  expect(said.textContent).toContain('600 ns: Host work holds the device up');
  expect(said.textContent).toContain('Known because no thread launched anything for a while.');
  expect(said.textContent).toContain('Move it out of the step.');
  expect(within(said).getAllByRole('listitem').length).toBe(2);
  within(said).getAllByRole('button', { name: 'aten::item' })[0]?.click();
  await waitFor(() => expect(window.location.hash).toContain('event=11'));
  expect(window.location.hash).not.toContain('at=');
});

it('says where no gap is to be explained', async () => {
  const server = serveTimeline();
  server.answers.idle = (query) => ({ gap: null, accounted: query.get('at_ns') !== '9', least_ns: 0 });
  await openPage('p.torchtidy.view=timeline&p.torchtidy.at=9');
  expect(await screen.findByText(/This time lies outside the steps/)).toBeTruthy();
  key('i', await screen.findByRole('application'));
  expect(await screen.findByText(/Another stream works here/)).toBeTruthy();
  expect(askedFor(server, 'idle').at(-1)).toContain('at_ns=1500000');
});

it('marks the events of a finding that is chosen beside it, and leads to the longest pieces of a part of the step', async () => {
  const evidence = [10, 11].map((id) => ({ start_ns: 1_000_000 * (id - 9), end_ns: 1_000_000 * (id - 9) + 2000, event: 'aten::item', event_id: id }));
  serveTimeline({}, ledger([ledgerEntry('host_work', null, [5000, 5000], { title: 'Host work holds the device up', evidence })]));
  await openPage('torchtidy&p.torchtidy.view=timeline');
  const beside = within(await screen.findByRole('complementary', { name: 'Findings and parts of the step' }));
  const [first] = beside.getAllByRole('button');
  expect(first?.textContent).toContain('train.py:42');
  for (const marked of [true, false]) {
    if (first) fireEvent.click(first);
    await waitFor(() => expect(screen.queryAllByText(/matched events of/).length).toBe(marked ? 1 : 0));
    expect(first?.getAttribute('aria-pressed')).toBe(String(marked));
  }
  const part = beside.getByRole('button', { name: /^Host work/ });
  for (const id of [10, 11, 10]) {
    fireEvent.click(part);
    await waitFor(() => expect(window.location.hash).toContain(`event=${id}`));
  }
});
