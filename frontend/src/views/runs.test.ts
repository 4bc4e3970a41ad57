import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { BoardAnswer, BoardRow } from '../api/types.gen';
import { finding, report, state } from '../testing/fixtures';
import { openPage, rows } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

const MS = 1_000_000;
const row = (run: string, at: number, stepMs: number | null, changes: Partial<BoardRow> = {}): BoardRow => ({
  run, worker: 'host_1', span: '1', recorded_ms: at, state: stepMs === null ? 'queued' : 'done', known: stepMs !== null, device: 'NVIDIA A100',
  step_ns: stepMs === null ? null : stepMs * MS, saving_ns: stepMs === null ? null : 10 * MS, findings: 1, action: stepMs === null ? '' : 'Load batches in workers', finding: 'a', problem: '', logged: null, ...changes,
});
const ROWS = [row('resnet_1', 1_700_000_000_000, 100), row('resnet_2', 1_700_000_100_000, 120), row('gpt', 1_600_000_000_000, null)];

function serveRuns(answers: BoardAnswer[]): TestServer {
  const server = serveProfile(report({ findings: [finding('a')] }), state());
  const names = answers[0]?.runs.map(({ run }) => run) ?? [];
  server.answers.runs = () => ({ logdirs: ['/runs'], scanning: false, runs: names.map((run) => ({ run, profiles: [state()] })) });
  server.answers.board = () => (answers.length > 1 ? answers.shift() : answers[0]);
  return server;
}

/** happy-dom has no layout: the pane gets a size, so that rows are visible. */
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});

const table = () => screen.findByRole('table', { name: 'Runs' });
const names = async () => (await within(await table()).findAllByRole('row')).slice(1).map((each) => within(each).getAllByRole('button')[0]?.textContent);

describe('the list of all runs', () => {
  it('is what an address without a run opens, newest first, and analyses no run by itself', async () => {
    const server = serveRuns([{ runs: ROWS, pending: 0, unasked: 1 }]);
    await openPage();
    await vi.waitFor(async () => expect(await names()).toEqual(['resnet_2', 'resnet_1', 'gpt']));
    expect(screen.getByText('3 runs; 1 not analysed')).toBeTruthy();
    expect(server.asked.filter((each) => each.startsWith('report'))).toEqual([]);
    expect(server.asked).toContain('board?analyse=few');
    fireEvent.click(screen.getByRole('button', { name: 'Analyse all' }));
    await vi.waitFor(() => expect(server.asked).toContain('board?analyse=all'));
  });

  it.each([
    ['Back from a run', 'torchtidy', 'torchtidy&p.torchtidy.run=resnet_1'],
    ['a link to a run that is gone', 'torchtidy&p.torchtidy.run=gone&p.torchtidy.view=overview', 'torchtidy&p.torchtidy.run=resnet_1'],
    ['a view without a run', 'torchtidy&p.torchtidy.view=timeline', 'torchtidy&p.torchtidy.run=resnet_1'],
  ])('is where %s leads, and no other run', async (_, address, before) => {
    const server = serveRuns([{ runs: ROWS, pending: 0, unasked: 0 }]);
    await openPage(before);
    await rows();
    expect(document.title).toBe('resnet_1 · Findings · TorchTidy');
    server.asked.length = 0;
    window.history.replaceState(null, '', `#${address}`);
    window.dispatchEvent(new PopStateEvent('popstate'));
    expect(await names()).toEqual(['resnet_2', 'resnet_1', 'gpt']);
    expect(server.asked.filter((each) => each.startsWith('report'))).toEqual([]);
    expect(screen.getAllByRole('tab').map((each) => each.textContent)).toEqual(['All runs', 'Compare']);
    expect(document.title).toBe('All runs · TorchTidy');
  });

  it('marks what got slower than the recording before of the same job', async () => {
    serveRuns([{ runs: ROWS, pending: 0, unasked: 0 }]);
    await openPage();
    const worse = await screen.findByRole('img', { name: /slower/ });
    expect(worse.getAttribute('aria-label')).toBe('20 % slower than the recording before. Step times: 100 ms, 120 ms');
    expect(worse.closest('[role=row]')?.textContent).toContain('▲ +20 %');
    expect(worse.closest('[role=row]')?.textContent).toContain('8.33 % 10.0 ms');
    expect((await table()).querySelectorAll('.worse').length).toBe(1);
  });

  it('marks by sign and words what could not be read, all of it or a part', async () => {
    serveRuns([{ runs: [
      row('cut', 1_700_000_200_000, 90, { problem: 'The list of events does not end.', findings: 0, action: '' }),
      row('broken', 1_700_000_100_000, null, { state: 'error', problem: 'The file is empty.' }), ...ROWS,
    ], pending: 0, unasked: 0 }]);
    await openPage();
    const text = async (name: string) => (await within(await table()).findByRole('row', { name: new RegExp(name) })).textContent;
    expect(await text('cut')).toContain('▲ not all could be read');
    expect(screen.getByTitle('The list of events does not end.').textContent).toBe('▲ not all could be read');
    expect(await text('broken')).toContain('✕ could not be read');
    expect(await text('broken')).not.toContain('not analysed');
    expect(screen.getByTitle('The file is empty.').classList.contains('muted')).toBe(false);
    expect(await text('gpt')).toContain('not analysed yet');
    expect(await text('resnet_1')).not.toMatch(/[▲✕] (?:not|could)/);
  });

  it('says nothing of a saving where none is expected', async () => {
    serveRuns([{ runs: [row('resnet', 1_700_000_000_000, 100, { saving_ns: 0 }), row('gpt', 1_600_000_000_000, null)], pending: 0, unasked: 0 }]);
    await openPage('torchtidy&p.torchtidy.view=runs');
    expect((await table()).textContent).not.toContain('0 ns');
  });

  it('fills in as runs are analysed', async () => {
    serveRuns([{ runs: ROWS, pending: 1, unasked: 0 }, { runs: [...ROWS.slice(0, 2), row('gpt', 1_600_000_000_000, 7)], pending: 0, unasked: 0 }]);
    await openPage();
    expect((await table()).textContent).toContain('not analysed');
    await vi.waitFor(async () => expect((await table()).textContent).toContain('7.00 ms'), 5000);
  });

  it('has no column of dashes: neither a trend of single runs nor what was logged', async () => {
    serveRuns([{ runs: [row('resnet', 1_700_000_000_000, 100), row('gpt', 1_600_000_000_000, 83)], pending: 0, unasked: 0 }]);
    await openPage('torchtidy&p.torchtidy.view=runs');
    const headings = within(await table()).getAllByRole('columnheader').map((each) => each.textContent?.replace(/[▾▴]/, ''));
    expect(headings).toEqual(['Compare', 'Run', 'Recorded', 'Device', 'Step', 'Recoverable', 'Do first']);
    const cells = within(await table()).getAllByRole('row').map((each) => each.querySelectorAll('[role=cell], [role=columnheader]').length);
    expect(new Set(cells)).toEqual(new Set([headings.length]));
    expect((await table()).textContent).toContain('83.0 ms');
  });

  it('is searched and sorted, and leads to a run', async () => {
    serveRuns([{ runs: ROWS, pending: 0, unasked: 0 }]);
    await openPage();
    fireEvent.click(within(await table()).getByRole('button', { name: 'Step' }));
    await vi.waitFor(async () => expect((await names())[0]).toBe('resnet_2'));
    fireEvent.input(screen.getByRole('searchbox', { name: 'Search runs' }), { target: { value: 'resnet_1' } });
    await vi.waitFor(async () => expect(await names()).toEqual(['resnet_1']));
    fireEvent.click(within(await table()).getByRole('button', { name: 'resnet_1' }));
    expect((await rows()).length).toBe(1);
    expect(window.location.hash).toContain('run=resnet_1');
  });

  it('compares two chosen runs, the older as the baseline', async () => {
    serveRuns([{ runs: ROWS, pending: 0, unasked: 0 }]);
    await openPage();
    for (const name of ['gpt', 'resnet_2', 'resnet_1']) fireEvent.click(within(await table()).getByRole('checkbox', { name: `Compare ${name}` }));
    fireEvent.click(await screen.findByRole('button', { name: 'Compare the two runs' }));
    await vi.waitFor(() => expect(window.location.hash).toContain('p.torchtidy.cmp=resnet_1&p.torchtidy.with=resnet_2'));
  });

  it('is passed over where there is one run', async () => {
    serveProfile(report({ findings: [finding('a')] }), state());
    await openPage();
    expect((await rows()).length).toBe(1);
    expect(screen.queryByRole('tab', { name: 'All runs' })).toBeNull();
  });
});
