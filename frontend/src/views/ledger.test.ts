import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, describe, expect, it } from 'vitest';
import type { ProfileReport } from '../api/types.gen';
import { finding, noAccount, ledger, ledgerEntry, ledgerOwner, report, saving, state } from '../testing/fixtures';
import { openPage, rows } from '../testing/page';
import { serveProfile } from '../testing/server';

afterEach(cleanup);

const MS = 1_000_000;
const HOSTILE = '<img src=x onerror="document.title=1"> `void` <b>kernel</b>';

/** Three steps of 100 ms and 7 ns, 100 ms and 8 ns, and 101 ms. */
const ENTRIES = [
  ledgerEntry('compute', 'matrix', [55 * MS + 1, 55 * MS + 2, 55 * MS], {
    owner: ledgerOwner({ place: 'train_step in /job/train.py', file: '/job/train.py', work: HOSTILE, operator: 'aten::mm', kernel: HOSTILE, own: { function: 'train_step', file: '/job/train.py', line: 42 }, known_by: 'operator' }),
    limit: { share_reached: 0.84, bound: 'compute', known_share: 0.6, by: 'shapes' }, nothing_to_fix: 'The products run near the device’s limit.',
    evidence: [{ start_ns: 10 * MS, end_ns: 12 * MS, event: HOSTILE, event_id: 17 }, { start_ns: 50 * MS, end_ns: 51 * MS, event: 'gemm' }],
  }),
  ledgerEntry('host_work', null, [20 * MS, 20 * MS, 21 * MS], { proof: 'silent', finding_id: 'a', owner: ledgerOwner({ place: '/lib/image.py:390 pixels / 255', file: '/lib/image.py', line: 390, kernel: 'Memcpy HtoD', library: { function: 'normalize', file: '/lib/image.py', line: 390 }, known_by: 'stack' }) }),
  ledgerEntry('communication', null, [15 * MS + 2, 15 * MS + 2, 15 * MS], { communication: { transfer_ns: 30 * MS, wait_ns: 15 * MS, by: 'ranks' }, advice: 'Overlap it: `bucket_cap_mb`.' }),
  ledgerEntry('graph_start', null, [9 * MS, 9 * MS, 9 * MS]),
  ledgerEntry('launch_pace', null, [900_002, 900_002, 900_000]),
  ledgerEntry('garbage_collection', null, [100_002, 100_002, 100_000]),
];
const FINDING = finding('a', { category: 'launch', message: 'The host resizes `images`', cost_ns: 20 * MS, share: 0.9 });

type Changes = Partial<ProfileReport>;

async function open(changes: Changes = {}, hash = 'torchtidy&p.torchtidy.view=overview'): Promise<HTMLElement> {
  serveProfile(report({ ledger: ledger(ENTRIES), findings: [FINDING], devices: [{ kind: 'cuda', index: 0, name: 'A100', compute_capability: '8.0' }], ...changes }), state());
  await openPage(hash);
  if (hash.includes('overview')) await screen.findByRole('heading', { level: 1, name: 'Overview' });
  else await screen.findByRole('region', { name: 'Summary of the profile' });
  return document.body;
}

const table = (of = 'the average step') => screen.getByRole('table', { name: `Entries of ${of}` });
const cells = (row: Element | undefined) => [...row?.children ?? []].map((cell) => cell.textContent);
const lines = (of?: string) => within(table(of)).getAllByRole('row').slice(1);
const whole = (row: Element | undefined): number => Number(/^([\d,]+) ns$/.exec(row?.querySelector('[title]')?.getAttribute('title') ?? '')?.[1]?.replaceAll(',', ''));

it('a recording of what a job does once promises nothing of its steps', async () => {
  const findings = [finding('a', { saving: saving(50 * MS) })];
  const shown = { findings, joint_saving: saving(50 * MS) };
  await open({ ...shown, ledger: ledger(ENTRIES, { recording: 'capture', is_one_time: true }) }, 'torchtidy');
  expect(document.body.textContent).toContain('Record steady steps first. What is found here is of this recording, not of each step of the job.');
  expect(document.querySelector('.gain-number')?.textContent).toMatch(/^Takes 50 ms of 100 ms in this recording/);
  await open(shown, 'torchtidy');
  expect(document.querySelector('.gain-number')?.textContent).toMatch(/^Fix saves about 50 ms/);
});

describe('the account on the overview', () => {
  it('lists the entries, largest first: share, time, cause, owner, limit, what to do', async () => {
    await open();
    expect(within(table()).getAllByRole('columnheader').map(({ textContent }) => textContent)).toEqual(['Share', 'Time per step', 'What', 'Whose time', 'How near its limit', 'What to do']);
    expect(lines().map((row) => cells(row).slice(0, 3).join(' | '))).toEqual([
      '54.8 % | 55.0 ms | ▸Device: matrix products', '20.3 % | 20.3 ms | ▸Host work holds the device up', '15.0 % | 15.0 ms | ▸Communication that nothing hides',
      '8.97 % | 9.00 ms | ▸A queued graph has not started yet', '1.00 % | 1.00 ms | ▸2 smaller entries', '100 % | 100 ms | Sum',
    ]);
    const [matrix, host, communication, graph] = lines().map((row) => cells(row).slice(3));
    expect(matrix).toEqual([`train_step in train.py${HOSTILE}`, '84 % of the device’s limit (compute)known for 60 % of its time', 'Nothing to fix: The products run near the device’s limit.']);
    expect(host).toEqual(['image.py:390 pixels / 255', '–', 'The host resizes images']);
    expect(communication).toEqual(['not recorded', '10 ms transfer, 5 ms waiting for other ranks', 'Overlap it: bucket_cap_mb.']);
    expect(graph?.[2]).toBe('–');
  });

  it('adds up to the step in ns, the average one and each that is chosen', async () => {
    const account = ledger(ENTRIES);
    await open();
    expect(whole(lines().at(-1))).toBe(account.step_ns.mean);
    fireEvent.click(screen.getByRole('option', { name: /^ProfilerStep#5/ }));
    await waitFor(() => expect(table('ProfilerStep#5')).toBeTruthy());
    expect(whole(lines('ProfilerStep#5').at(-1))).toBe(100 * MS + 8);
    expect(screen.getByRole('region', { name: 'Where the time goes' }).textContent).toContain('ProfilerStep#5: 100 ms');
  });

  it('has a bar whose parts are those of the list, and the same as a table', async () => {
    await open();
    const chart = screen.getByRole('region', { name: 'Where the time goes' });
    const grown = [...chart.querySelectorAll<HTMLElement>('.stacked-part')].map(({ style }) => Number(style.flexGrow));
    expect(grown.length).toBe(6);
    expect(grown.reduce((sum, part) => sum + part, 0)).toBeCloseTo(1, 5);
    fireEvent.click(within(chart).getByRole('button', { name: 'Show as table' }));
    await waitFor(() => expect(within(chart).getAllByRole('row').map(cells).slice(0, 3)).toEqual([
      ['Part', 'Group', 'Time per step', 'Share'], ['Matrix products', 'Device compute', '55.0 ms', '54.8 %'], ['Exposed communication', 'Exposed communication', '15.0 ms', '15.0 %'],
    ]));
  });

  it('folds small entries into one line, which opens', async () => {
    await open();
    const fold = within(table()).getByRole('button', { name: '2 smaller entries', expanded: false });
    expect(screen.queryByText('Python collects garbage')).toBeNull();
    fireEvent.click(fold);
    expect(await screen.findByText('Python collects garbage')).toBeTruthy();
    expect(within(table()).getByRole('button', { name: '2 smaller entries, listed above', expanded: true })).toBeTruthy();
  });

  it('says how long a step is, by which steps, and the host’s pace where it is another one', async () => {
    await open({ ledger: ledger(ENTRIES, { host_step_ns: 80 * MS, step_source: 'serving_step', step_source_text: 'marked by the inference engine', left_out: [{ ns: 30 * MS, reason: '30 ms at the start belong to `earlier` work.' }] }) });
    const text = screen.getByRole('main').textContent;
    expect(text).toContain('A step takes 100 ms (median of 3 steps, min–max 100 ms to 101 ms); steps are marked by the inference engine.');
    expect(text).toContain('The host takes 80 ms to run one.');
    expect(text).toContain('Left out: 30 ms at the start belong to earlier work.');
  });

  it('says nothing of the host’s pace within 2 %, and the average where it reads differently', async () => {
    const changes = { host_step_ns: 99 * MS, step_ns: { median: 98 * MS, mean: ledger(ENTRIES).step_ns.mean, n: 3 } };
    const text = (await open({ ledger: ledger(ENTRIES, changes) })).textContent;
    expect(text).not.toContain('The host takes');
    expect(text).toContain('A step takes 98 ms (median of 3 steps, min–max 100 ms to 101 ms, on average 100 ms)');
  });

  it('does not call a whole recording a step', async () => {
    const text = (await open({ ledger: ledger([ledgerEntry('compute', 'matrix', [5 * MS])], { step_source: 'whole_trace', step_source_text: 'no steps were marked: the whole trace counts as one' }) })).textContent;
    expect(text).toContain('The recording is 5 ms long. No steps were marked: the whole trace counts as one.');
    expect(cells(within(table('the recording')).getAllByRole('row')[0])[1]).toBe('Time');
  });

  it('says why where there is nothing to account for', async () => {
    const text = (await open({ ledger: noAccount() })).textContent;
    expect(screen.queryByRole('table', { name: /Entries/ })).toBeNull();
    expect(text).toContain('This recording contains no operators.');
    expect(text).not.toContain('Its figures are not those of a steady step.');
    expect(text).toContain('It contains no steps, so the step time is unknown.');
  });
});

describe('an entry', () => {
  const opened = async () => {
    fireEvent.click(within(table()).getByRole('button', { name: /matrix products/, expanded: false }));
    return screen.findByRole('button', { name: '2 ms at 10.000 ms' });
  };

  it('opens to its longest pieces, each a way to the timeline', async () => {
    await open();
    const piece = await opened();
    const button = within(table()).getByRole('button', { name: /matrix products/, expanded: true });
    expect(document.getElementById(button.getAttribute('aria-controls') ?? '')?.contains(piece)).toBe(true);
    expect(screen.getByText('The 2 longest of 3 pieces, on the timeline')).toBeTruthy();
    fireEvent.click(piece);
    await waitFor(() => expect(window.location.hash).toContain('view=timeline'));
    expect(window.location.hash).toContain('win=6000000-16000000');
    expect(window.location.hash).toContain('event=17');
  });

  it('marks no event where none is known', async () => {
    await open();
    await opened();
    fireEvent.click(screen.getByRole('button', { name: '1 ms at 50.000 ms' }));
    await waitFor(() => expect(window.location.hash).toContain('view=timeline'));
    expect(window.location.hash).not.toContain('event=');
  });

  it('leads to its finding', async () => {
    await open();
    fireEvent.click(within(table()).getByRole('button', { name: 'The host resizes images' }));
    expect(await screen.findByRole('heading', { level: 1, name: 'The host resizes images' })).toBeTruthy();
    expect(window.location.hash).toContain('finding=a');
  });

  it('leads to its place in the source', async () => {
    await open();
    fireEvent.click(within(table()).getByRole('button', { name: 'image.py:390 pixels / 255' }));
    await waitFor(() => expect(window.location.hash).toContain('view=source'));
    expect(decodeURIComponent(window.location.hash)).toContain('file=/lib/image.py&p.torchtidy.line=390');
  });

  it('says its advice where its finding is not in the profile', async () => {
    const [host] = [ledgerEntry('host_work', null, [MS], { finding_id: 'gone', advice: 'Move it to workers.' })];
    await open({ ledger: ledger([host]), findings: [] });
    expect(cells(lines('the one step')[0])[5]).toBe('Move it to workers.');
  });

  it('says how much of it is whose', async () => {
    const own = { function: 'f', file: '/job/a.py', line: 3 };
    const [first, second] = [ledgerOwner({ place: '/job/a.py:3 f', file: '/job/a.py', line: 3, library: own, own, ns: 6 * MS }), ledgerOwner({ work: 'aten::rand', ns: 4 * MS })];
    await open({ ledger: ledger([ledgerEntry('host_work', null, [10 * MS], { proof: 'silent', proof_text: 'no thread launched anything for a while', owner: first, owners: [first, second], advice: 'Move it.', nothing_to_fix: 'Its efficiency is not known.' })]) });
    expect(cells(lines('the one step')[0]).slice(3)).toEqual(['a.py:3 f60 % of it', '–', 'Move it.Its efficiency is not known.']);
    fireEvent.click(within(table('the one step')).getByRole('button', { name: /Host work/ }));
    expect(await screen.findByText('aten::rand, 40 % of it')).toBeTruthy();
    expect(screen.getByText('No thread launched anything for a while; confidence high')).toBeTruthy();
  });

  it('has no empty proof', async () => {
    const own = { function: 'f', file: '/job/a.py', line: 3 };
    await open({ ledger: ledger([ledgerEntry('host_work', null, [10 * MS], { proof: 'none', owner: ledgerOwner({ library: own, own, ns: 6 * MS }) })]) });
    fireEvent.click(within(table('the one step')).getByRole('button', { name: /Host work/ }));
    expect((await screen.findByText('Confidence')).nextElementSibling?.textContent).toBe('High');
    expect(screen.queryByText('Proof')).toBeNull();
  });

  it('shows names as text, in full where it is open', async () => {
    await open();
    await opened();
    const name = within(table()).getAllByText(HOSTILE);
    expect(name.length).toBe(3);
    expect(document.querySelector('.ledger img, .ledger-owner b, .ledger-full b')).toBeNull();
    expect(document.querySelector('.ledger-name')?.getAttribute('title')).toBe(HOSTILE);
    expect(document.title).not.toBe('1');
  });
});

describe('a recording of something else than steady steps', () => {
  it('is said on every view, in the report’s words', async () => {
    const banner = 'This recording holds start-up: 43 % of it.';
    for (const hash of ['torchtidy&p.torchtidy.view=overview', 'torchtidy']) {
      await open({ ledger: ledger(ENTRIES, { recording: 'start-up', banner, left_out: [{ ns: 2 * MS, reason: '2 ms of `earlier` work.' }] }) }, hash);
      const notice = screen.getByText('Left out: 2 ms of', { exact: false }).closest('.notice');
      expect(notice?.querySelector('p')?.textContent).toBe(`${banner} Its figures are not those of a steady step.`);
      expect(screen.getAllByText('Left out: 2 ms of', { exact: false }).length).toBe(1);
    }
  });

  it('has no banner where steps are steady', async () => {
    await open();
    expect(document.body.textContent).not.toContain('steady');
    expect(document.querySelector('.notice.warning')).toBeNull();
  });
});

describe('beside the findings', () => {
  const summary = () => within(screen.getByRole('region', { name: 'Summary of the profile' }));

  it('the bar of the header is of sums of entries', async () => {
    await open({}, 'torchtidy');
    expect(summary().getByRole('heading', { name: 'Where the 100 ms of the average step go' })).toBeTruthy();
    expect(summary().getByRole('figure').textContent).toBe(
      'Device compute 54.8 %Exposed communication 15 %Queued work 8.97 %Host work 20.3 %2 smaller parts 1 %',
    );
    expect(summary().getByText('69.8 %')).toBeTruthy(); // busy: compute and communication
  });

  it('a part of that bar lists what its entries’ finding is about', async () => {
    await open({ findings: [FINDING, finding('b')] }, 'torchtidy');
    expect((await rows()).length).toBe(2);
    fireEvent.click(summary().getByRole('button', { name: /^Host work/ }));
    await waitFor(async () => expect((await rows()).length).toBe(1));
    expect(summary().queryByRole('button', { name: /^Device compute/ })).toBeNull();
  });

  it('a finding has the share that its message and the report have', async () => {
    await open({ step_ns: 50 * MS }, 'torchtidy');
    const text = (await screen.findByRole('heading', { level: 1 })).closest('article')?.textContent;
    expect(text).toContain('90 % of the step time');
    expect((await rows())[0]?.querySelector('.saving')?.getAttribute('title')).toBe('4 % of the step time; at least 2 ms, at most 6 ms; computed from the timeline');
  });

  it('the heading says what bounds the step, where nothing was found', async () => {
    await open({ findings: [], outcomes: [{ rule: 'passed', status: 'clean' }] }, 'torchtidy');
    const heading = screen.getByRole('heading', { level: 1, name: 'Device: matrix products: 84 % of the device’s limit' });
    expect(heading.parentElement?.textContent).toContain('55 ms of 100 ms, 54.8 %.');
    expect(heading.parentElement?.textContent).toContain('Nothing to fix: The products run near the device’s limit.');
    expect(document.body.textContent).not.toContain('Nothing to fix was found');
    fireEvent.click(screen.getByRole('button', { name: 'Show the whole step' }));
    await screen.findByRole('heading', { level: 1, name: 'Overview' });
    expect(screen.queryByRole('region', { name: 'Findings worth most' })).toBeNull();
    expect(screen.getByRole('main').textContent).toContain('No check found anything to fix. Device: matrix products: 84 % of the device’s limit.');
  });
});

describe('a saving of nothing', () => {
  const none = finding('a', { saving: saving(0, { low_ns: 0, high_ns: 78_683_500, speedup: 1 }) });

  it.each(['torchtidy', 'torchtidy&p.torchtidy.view=overview'])('is said in words, with what it may be at most: %s', async (hash) => {
    const body = await open({ findings: [none] }, hash);
    expect(body.textContent).toMatch(/no saving expected,? ?at most 78\.7 ms/i);
    expect(body.textContent).not.toContain('78683500');
    expect(body.textContent).not.toMatch(/(?<![\d.])0 ns/);
  });

  it('has no upper bound where that is nothing, too', async () => {
    const body = await open({ findings: [finding('a', { saving: saving(0) })] }, 'torchtidy');
    expect(body.textContent).toContain('no saving expected');
    expect(body.textContent).not.toContain('at most');
    expect(body.textContent).not.toMatch(/(?<![\d.])0 ns/);
  });
});
