import { fireEvent, screen, within } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { finding, report, rule, saving, state } from '../testing/fixtures';
import { openPage, rows } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

const OWN = finding('own', { message: 'Own finding', saving: saving(9_000_000) });
const LATE = finding('late', { message: 'Rank 1 is late', rule: 'run-rule', saving: saving(3_000_000), ranks: [1], matches: 4 });

/** A run of several ranks; the first one's report comes with the findings `about` all of them. */
function serveRun(workers: number, about: () => { findings: unknown[]; ranks: number[]; pending: number }): TestServer {
  const server = serveProfile(report({ findings: [OWN] }), state(), [rule('run-rule', { title: 'One rank that all others wait for' })]);
  const profiles = Array.from({ length: workers }, (_, rank) => state({ worker: `host_${rank + 1}` }));
  server.answers['runs'] = () => ({ logdirs: ['/runs'], scanning: false, runs: [{ run: 'job', profiles }] });
  server.answers['report'] = () => {
    const { findings, ranks, pending } = about();
    const outcomes = findings.length > 0 ? [] : [{ rule: 'run-rule', status: 'clean', reason: null }];
    return {
      states: [state()], ranks, pending,
      report: { run: 'job', profiles: [report({ findings: [OWN] })], findings, outcomes: ranks.length > 1 ? outcomes : [] },
    };
  };
  return server;
}

const everyRank = (asked: readonly string[]): string[] => asked.filter((each) => each.includes('ranks=all'));
const texts = async (): Promise<(string | null)[]> => (await rows()).map((row) => row.querySelector('.row-title')?.textContent ?? null);

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout'], shouldAdvanceTime: true, advanceTimeDelta: 20 }));
afterEach(() => {
  vi.useRealTimers();
  localStorage.clear();
});

describe('a finding about the run', () => {
  const whole = () => ({ findings: [LATE], ranks: [0, 1, 2], pending: 0 });

  it('comes before those of the profile, and names its ranks', async () => {
    serveRun(3, whole);
    await openPage();
    expect(await texts()).toEqual(['Rank 1 is late', 'Own finding']);
    const [first, second] = await rows();
    expect(first?.querySelector('.rank-badge')?.textContent).toBe('rank 1');
    expect(second?.querySelector('.rank-badge')).toBeNull();
  });

  it('has a detail without a table of events, and says why', async () => {
    const server = serveRun(3, whole);
    await openPage('torchtidy&p.torchtidy.finding=late');
    await rows();
    const main = screen.getByRole('main');
    expect(within(main).getByRole('heading', { level: 1 }).textContent).toBe('Rank 1 is late');
    expect(main.textContent).toContain('No single event of this profile shows it');
    expect(within(main).queryByRole('table')).toBeNull();
    expect(server.asked.filter((each) => /^(events|stack)/.test(each))).toEqual([]);
  });

  it('is found by its ranks', async () => {
    serveRun(3, whole);
    await openPage('torchtidy&p.torchtidy.q=rank%201');
    expect(await texts()).toEqual(['Rank 1 is late']);
  });

  it('is copied with its ranks', async () => {
    const copied: string[] = [];
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: (text: string) => { copied.push(text); return Promise.resolve(); } } });
    serveRun(3, whole);
    await openPage();
    await rows();
    fireEvent.click(within(screen.getByRole('main')).getByRole('button', { name: 'Copy as Markdown' }));
    await vi.waitFor(() => expect(copied[0]).toContain('4 matches, rank 1. Check: `run-rule`.'));
  });

  it('can be muted', async () => {
    serveRun(3, whole);
    await openPage();
    await rows();
    fireEvent.click(screen.getByRole('button', { name: 'Mute' }));
    await vi.waitFor(async () => expect(await texts()).toEqual(['Own finding']));
  });

  it('is among the findings worth most', async () => {
    serveRun(3, whole);
    await openPage('torchtidy&p.torchtidy.view=overview');
    const list = within(await screen.findByRole('region', { name: 'Findings worth most' }));
    expect(list.getAllByRole('listitem').map((item) => item.querySelector('.headline-text')?.textContent?.trim()))
      .toEqual(['Own finding', 'Rank 1 is late rank 1']);
  });

  it('that nobody has counts as a passed check', async () => {
    serveRun(3, () => ({ findings: [], ranks: [0, 1, 2], pending: 0 }));
    await openPage();
    await rows();
    expect(document.querySelector('.outcome-group.clean')?.textContent).toContain('One rank that all others wait for');
    expect(document.querySelector('.outcome-group.clean summary')?.textContent).toBe('Passed checks 1 about all ranks together');
  });

  it('is counted with those of the profile, and how many it is, since an exported page has it apart', async () => {
    const server = serveRun(3, () => ({ findings: [], ranks: [0, 1, 2], pending: 0 }));
    const [own, ofRun] = [['a', 'b'], ['run-rule']].map((names) => names.map((name) => ({ rule: name, status: 'clean' as const, reason: null })));
    server.answers['report'] = () => ({
      states: [state()], ranks: [0, 1, 2], pending: 0, report: { run: 'job', profiles: [report({ findings: [OWN], outcomes: own ?? [] })], findings: [], outcomes: ofRun },
    });
    await openPage();
    await rows();
    expect(document.querySelector('.outcome-group.clean summary')?.textContent).toBe('Passed checks 3 1 of them about all ranks together');
  });
});

describe('the other ranks', () => {
  it('of a small run are analysed unasked, and what they show does not push aside what is being read', async () => {
    let pending = 2;
    const server = serveRun(3, () => (pending > 0 ? { findings: [], ranks: [0], pending } : { findings: [LATE], ranks: [0, 1, 2], pending }));
    await openPage();
    await rows();
    expect(document.querySelector('.list')?.textContent).toContain('Reading the other ranks of this run: 1 rank read, 2 traces to go');
    expect(everyRank(server.asked).length).toBe(1);
    pending = 0;
    vi.advanceTimersByTime(2000);
    await vi.waitFor(async () => expect(await texts()).toEqual(['Rank 1 is late', 'Own finding']));
    expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Own finding');
    expect(window.location.hash).toContain('finding=own');
    expect(document.querySelector('.list')?.textContent).not.toContain('Reading the other ranks');
  });

  it('of a large run are analysed when the user asks', async () => {
    const server = serveRun(64, () => ({ findings: [], ranks: [0], pending: 63 }));
    await openPage();
    await rows();
    expect(document.querySelector('.list')?.textContent).toContain('Not all ranks are read: 1 rank read, 63 traces to go');
    expect(everyRank(server.asked)).toEqual([]);
    fireEvent.click(screen.getByRole('button', { name: 'Read them' }));
    await vi.waitFor(() => expect(everyRank(server.asked).length).toBe(1));
    expect(await screen.findByText(/Reading the other ranks/)).toBeTruthy();
  });

  it('are no question where one worker recorded several spans', async () => {
    serveRun(1, () => ({ findings: [], ranks: [0], pending: 3 }));
    await openPage();
    await rows();
    expect(document.querySelector('.list')?.textContent).not.toContain('ranks');
  });
});

it('shows no findings of another run', async () => {
  const server = serveRun(2, () => ({ findings: [LATE], ranks: [0, 1], pending: 0 }));
  const { report: aboutJob } = server.answers;
  const other = { states: [state()], ranks: [], pending: 0, report: { run: 'other', profiles: [report({ findings: [OWN] })] } };
  const both = [state({ worker: 'host_1' }), state({ worker: 'host_2' })];
  server.answers['runs'] = () => ({ logdirs: [], scanning: false, runs: [{ run: 'job', profiles: both }, { run: 'other', profiles: [state()] }] });
  server.answers['report'] = (query, posted) => (query.get('run') === 'job' ? aboutJob?.(query, posted) : other);
  await openPage('torchtidy&p.torchtidy.run=job');
  expect(await texts()).toEqual(['Rank 1 is late', 'Own finding']);
  fireEvent.change(screen.getByRole('combobox', { name: 'Run' }), { target: { value: 'other' } });
  await vi.waitFor(async () => expect(await texts()).toEqual(['Own finding']));
});
