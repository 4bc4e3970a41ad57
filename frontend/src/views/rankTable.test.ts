import { fireEvent, screen, within } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RankRow, Ranks } from '../api/types.gen';
import { finding, report, saving, state } from '../testing/fixtures';
import { openPage } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

beforeEach(() => { // tests have no layout: a pane of this height has visible rows
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});
afterEach(() => localStorage.clear());

const row = (rank: number, changes: Partial<RankRow> = {}): RankRow => ({
  rank, worker: `host_${rank}`, span: '1', step_ns: 10e6, parts_ns: { host: 1e6, compute: 4e6 }, memory_peak_bytes: null,
  arrivals: { met: 4, last: 0, late_ns: 0, waited_ns: 0, waits_ns: 5e6 }, clock_ahead_ns: rank * 1000, clock_error_ns: 500, findings: 1, ...changes,
});
const SLOW = row(1, { parts_ns: { host: 6e6, compute: 4e6 }, arrivals: { met: 4, last: 4, late_ns: 5e6, waited_ns: 5e6, waits_ns: 0 } });

const ranks = (changes: Partial<Ranks> = {}): Ranks => ({
  world_size: 3, missing: 0, present: 'World size 3: all ranks are here.', notes: [], step_ns: 10e6, steps: 4, rows: [row(0), SLOW, row(2)],
  imbalances: [
    { what: 'host', rank: 1, most: 6e6, middle: 1e6, ratio: 6, notable: true, text: 'Rank 1 spends 6 ms of a step on Python.' },
    { what: 'compute', rank: 0, most: 4e6, middle: 4e6, ratio: 1, notable: false, text: 'Rank 0 spends 4 ms of a step on compute.' },
  ],
  places: [{ kind: 'all_reduce', group: '0', bytes: 4096, file: '/job/train.py', line: 7, met: 4, last_rank: 1, last: 4, waited_ns: 5e6 }],
  findings: [{
    id: 'own', rule: 'some-rule', severity: 'medium', message: 'Loader has no workers', ranks: [0, 1, 2], worst_rank: 2, cost_ns: 2e6, saving_ns: 1e6,
    text: 'on all 3 ranks, worst rank 2',
  }],
  ...changes,
});

async function open(answer: Ranks | null = ranks(), pending = 0, workers = 3): Promise<TestServer> {
  const server = serveProfile(report({ worker: 'host_0' }), state());
  const profiles = Array.from({ length: workers }, (_, rank) => state({ worker: `host_${rank}` }));
  const late = finding('late', { message: 'Rank 1 is late', rule: 'run-rule', saving: saving(4e6), ranks: [1] });
  server.answers['runs'] = () => ({ logdirs: ['/runs'], scanning: false, runs: [{ run: 'job', profiles }] });
  server.answers['report'] = (query) => ({
    states: [state({ worker: query.get('worker') ?? '' })], ranks: [0, 1, 2].slice(0, workers), pending,
    report: { run: 'job', profiles: [report({ worker: query.get('worker') ?? '', findings: [finding('own')] })], findings: workers > 1 ? [late] : [] },
  });
  server.answers['ranks'] = () => ({ ranks: answer, pending });
  await openPage('torchtidy&p.torchtidy.view=ranks');
  await vi.waitFor(() => expect(document.querySelector('h1')?.textContent).toBe('Ranks'));
  return server;
}

/** By selectors: finding roles among hundreds of cells takes seconds here. */
const table = () => vi.waitFor(() => {
  const found = document.querySelector<HTMLElement>('[role=table][aria-label="Table of ranks"]');
  if (!found?.querySelector('[data-key]')) throw new Error('no rows yet');
  return found;
});
const buttons = async () => [...(await table()).querySelectorAll<HTMLElement>('button[data-key]')];
const names = async () => (await buttons()).map((button) => button.textContent);
const rankButton = async (name: string) => (await buttons()).find((button) => button.textContent === name) ?? document.body;
const cell = async (rank: string, at: number) => (await rankButton(rank)).closest('[role=row]')?.querySelectorAll('[role=cell]')[at];
const heading = async (at: number) => (await table()).querySelectorAll<HTMLElement>('[role=columnheader]')[at] ?? document.body;
const sortBy = async (at: number) => fireEvent.click((await heading(at)).querySelector('button') ?? document.body);

describe('the table of ranks', () => {
  it('has the one that others wait for on top, with numbers and a shade', async () => {
    await open();
    await vi.waitFor(async () => expect(await names()).toEqual(['Rank 1', 'Rank 0', 'Rank 2']));
    const host = await cell('Rank 1', 2);
    expect([host?.textContent, host?.className]).toEqual(['6.00 ms', 'number shade-4']);
    expect((await cell('Rank 0', 2))?.className).toBe('number');
    expect((await cell('Rank 1', 5))?.textContent).toBe('5.00 ms');
  });

  it('is sorted by its headings, and says so', async () => {
    await open();
    await sortBy(0);
    await vi.waitFor(async () => expect(await names()).toEqual(['Rank 0', 'Rank 1', 'Rank 2']));
    expect((await heading(0)).getAttribute('aria-sort')).toBe('ascending');
    await sortBy(0);
    await vi.waitFor(async () => expect(await names()).toEqual(['Rank 2', 'Rank 1', 'Rank 0']));
  });

  it('leads to a rank', async () => {
    await open();
    fireEvent.click(await rankButton('Rank 2'));
    await vi.waitFor(() => expect(window.location.hash).toContain('worker=host_2'));
    expect(window.location.hash).toContain('view=overview');
  });

  it('draws of 128 ranks those in sight', async () => {
    await open(ranks({ rows: Array.from({ length: 128 }, (_, rank) => row(rank)) }));
    const drawn = await names();
    expect(drawn.length).toBeGreaterThan(8);
    expect(drawn.length).toBeLessThan(40);
    expect((await table()).getAttribute('aria-rowcount')).toBe('129');
  });
});

describe('beside the table', () => {
  it('findings of the ranks are told once, and open where they cost most', async () => {
    await open();
    const list = within(await screen.findByRole('region', { name: 'Findings of the ranks' }));
    expect(list.getAllByRole('listitem').map((item) => item.querySelector('.headline-text')?.textContent?.trim()))
      .toEqual(['Rank 1 is late rank 1', 'Loader has no workers on all 3 ranks, worst rank 2']);
    fireEvent.click(list.getByRole('button', { name: /Loader has no workers/ }));
    await vi.waitFor(() => expect(window.location.hash).toContain('finding=own'));
    expect(window.location.hash).toContain('worker=host_2');
  });

  it('muted findings are left out', async () => {
    localStorage.setItem('torchtidy.mutes', JSON.stringify({ findings: ['own'], rules: ['run-rule'] }));
    await open();
    expect(await screen.findByText('No check found anything wrong with these ranks.')).toBeTruthy();
  });

  it('what is uneven is marked by a word', async () => {
    await open();
    const items = within(await screen.findByRole('region', { name: 'Imbalance' })).getAllByRole('listitem');
    expect(items.map((item) => item.textContent)).toEqual(['▲ uneven Rank 1 spends 6 ms of a step on Python.', 'Rank 0 spends 4 ms of a step on compute.']);
  });

  it('who comes last to what is a table', async () => {
    await open();
    const places = within(await screen.findByRole('region', { name: 'Collectives' }));
    expect(places.getByRole('rowheader').textContent).toBe('all_reduce');
    expect(places.getAllByRole('cell').map((each) => each.textContent)).toEqual(['0', '4.00 KiB', 'train.py:7', 'Rank 1', '4 of 4', '5.00 ms']);
  });

  it('clocks are folded away', async () => {
    await open();
    const clocks = (await screen.findByText('Clocks of the ranks')).closest('details');
    expect(clocks?.open).toBe(false);
    expect(clocks?.querySelectorAll('tbody tr')[2]?.textContent).toBe('Rank 2host_22.00 µs500 ns');
  });

  it('missing ranks and doubts are said', async () => {
    await open(ranks({ missing: 1, world_size: 4, present: 'World size 4: ranks 0–2 are here, 3 is missing.', notes: ['Rank 1 was recorded by `a` and `b`.'] }));
    expect(await screen.findByText(/3 is missing/)).toBeTruthy();
    expect(screen.getByText(/1 rank is missing:/).closest('p')?.textContent).toContain('may be the one that all others wait for');
    expect(screen.getByText(/was recorded by/).textContent).toBe('Rank 1 was recorded by a and b.');
  });
});

it('does not call ranks missing that are not read yet', async () => {
  await open(ranks({ missing: 5, world_size: 8, present: 'World size 8: 3–7 are missing.' }), 5, 12);
  expect(await screen.findByText(/So far 3 ranks of 8/)).toBeTruthy();
  expect(screen.queryByText(/missing/)).toBeNull();
  expect(screen.getByRole('button', { name: 'Read them' })).toBeTruthy();
});

it('says what is needed where there is nothing to compare', async () => {
  await open(null, 0, 1);
  expect(await screen.findByText(/recordings of two ranks or more are needed/)).toBeTruthy();
});

it('does not call for more ranks while those that are there are read', async () => {
  await open(null, 2, 3);
  expect(await screen.findByText(/as soon as two of them are read/)).toBeTruthy();
  expect(screen.queryByText(/two ranks or more are needed/)).toBeNull();
});

it('has a tab only where there are several ranks', async () => {
  const tabs = () => screen.getAllByRole('tab').map((tab) => tab.textContent);
  await open();
  expect(tabs()).toContain('Ranks');
  serveProfile(report(), state());
  await openPage();
  await screen.findByRole('tab', { name: 'Overview' });
  expect(tabs()).not.toContain('Ranks');
});
