import { fireEvent, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Outcome, Steps } from '../api/types.gen';
import { finding, ledger, ledgerEntry, noAccount, place, report, rule, saving, state } from '../testing/fixtures';
import { key, openPage, rows } from '../testing/page';
import { serveProfile } from '../testing/server';

const FINDINGS = [
  finding('small', { message: 'Small', saving: saving(310_000), severity: 'low' }),
  finding('big', { message: '`loss.item()` waits', saving: saving(18_400_000, { low_ns: 12_000_000, high_ns: 21_300_000 }), severity: 'high', matches: 192 }),
  finding('unknown', { message: 'No estimate', saving: null, places: [], cost_ns: 12_000 }),
];

const titles = async () => (await rows()).map((row) => row.querySelector('.row-title')?.textContent);
const openTitle = () => screen.getByRole('heading', { level: 1 }).textContent;

afterEach(() => localStorage.clear()); // mutes

describe('the list', () => {
  it('is ranked by saving, with one unit for all rows', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    expect(await titles()).toEqual(['loss.item() waits', 'Small', 'No estimate']);
    const [big, small, unknown] = await rows();
    expect(big?.textContent).toContain('18.4 ms/step');
    expect(big?.textContent).toContain('12–21.3');
    expect(big?.textContent).toContain('192× · train.py:42 · confidence high');
    expect(small?.textContent).toContain('0.31 ms/step');
    expect(unknown?.textContent).toContain('12 µscost/step');
    expect(unknown?.textContent).toContain('no source line');
  });

  it('scales the bars to the biggest saving', async () => {
    serveProfile(report({ findings: [finding('a', { saving: saving(4000) }), finding('b', { saving: saving(1000) })] }), state());
    await openPage();
    expect((await rows()).map((row) => row.querySelector('.saving-bar > span')?.getAttribute('style'))).toEqual(['width: 100%;', 'width: 25%;']);
  });

  it('counts per trace where there are no steps', async () => {
    const steps: Steps = { basis: 'none', count: 0, median_ns: null, items: [] };
    serveProfile(report({ findings: FINDINGS, steps }), state());
    await openPage();
    expect((await rows())[0]?.textContent).toContain('18.4 ms/trace');
  });

  it('sorts and filters, and says so in the address', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    await rows();
    fireEvent.change(screen.getByRole('combobox', { name: 'Sort' }), { target: { value: 'matches' } });
    expect(await titles()).toEqual(['loss.item() waits', 'Small', 'No estimate']);
    fireEvent.input(screen.getByRole('searchbox', { name: 'Filter findings' }), { target: { value: 'low' } });
    await vi.waitFor(async () => expect(await titles()).toEqual(['Small']));
    expect(window.location.hash).toBe('#torchtidy&p.torchtidy.q=low&p.torchtidy.sort=matches');
    expect(screen.getByText('1 of 3 findings')).toBeTruthy();
  });

  it('says when the filter hides everything, and offers to clear it', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage('torchtidy&p.torchtidy.q=nothing');
    fireEvent.click(await screen.findByRole('button', { name: 'Clear the filter' }));
    expect((await rows()).length).toBe(3);
  });
});

describe('small findings', () => {
  const MORE = [...FINDINGS, ...['tiny', 'least'].map((id) => finding(id, { message: id, small: true, saving: saving(1_000_000, { speedup: 1.01 }) }))];

  it('are one line until they are asked for', async () => {
    serveProfile(report({ findings: MORE }), state());
    await openPage();
    expect((await rows()).length).toBe(3);
    const line = screen.getByRole('button', { name: '2 small findings, together 1.98 % of a step' });
    fireEvent.click(line);
    await vi.waitFor(async () => expect(await titles()).toEqual(['loss.item() waits', 'Small', 'No estimate', 'tiny', 'least']));
    fireEvent.click(line);
    await vi.waitFor(async () => expect((await rows()).length).toBe(3));
  });

  it('come into sight when the keys or a link lead there, and in a search', async () => {
    serveProfile(report({ findings: MORE }), state());
    await openPage();
    const shown = await rows();
    for (const _ of shown) key('j');
    await vi.waitFor(() => expect(openTitle()).toBe('tiny'));
    await openPage('torchtidy&p.torchtidy.q=tiny');
    expect((await rows()).length).toBe(1);
  });
});

describe('mutes', () => {
  const mutedGroup = () => [...document.querySelectorAll('.muted-group li')].map((each) => each.textContent);

  it('hide a finding from the list, and the list goes on with the next', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    await rows();
    fireEvent.click(screen.getByRole('button', { name: 'Mute' }));
    await vi.waitFor(async () => expect(await titles()).toEqual(['Small', 'No estimate']));
    expect(openTitle()).toBe('Small');
    expect(mutedGroup()).toEqual(['loss.item() waitsThis findingShow again']);
    expect(screen.getByText('Kept in this browser only.')).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Show again' }));
    await vi.waitFor(async () => expect(await titles()).toEqual(['loss.item() waits', 'Small', 'No estimate']));
    expect(mutedGroup()).toEqual([]);
  });

  it('are remembered by the browser, and a link to a muted finding still opens it', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage('torchtidy&p.torchtidy.finding=small');
    await rows();
    key('m');
    await vi.waitFor(async () => expect(await titles()).toEqual(['loss.item() waits', 'No estimate']));
    await openPage('torchtidy&p.torchtidy.finding=small');
    expect(await titles()).toEqual(['loss.item() waits', 'No estimate']);
    expect(openTitle()).toBe('Small');
  });

  it('of a check hide all its findings', async () => {
    serveProfile(report({ findings: FINDINGS.map((each, index) => ({ ...each, rule: index === 2 ? 'second-rule' : 'first-rule' })) }), state(), [rule('first-rule')]);
    await openPage();
    await rows();
    fireEvent.click(screen.getByRole('button', { name: 'Mute this check' }));
    await vi.waitFor(async () => expect(await titles()).toEqual(['No estimate']));
    expect(mutedGroup()).toEqual(['SmallAll of Title of first-ruleShow again', 'loss.item() waitsAll of Title of first-ruleShow again']);
  });

  it('are put beside the runs on request, and changed there from then on', async () => {
    const server = serveProfile(report({ findings: FINDINGS }), state());
    const posted: unknown[] = [];
    let kept: string[] | null = null;
    server.answers.mutes = (_, body) => {
      if (body !== null) {
        const change: { mute: { findings: string[] }; unmute: { findings: string[] } } = JSON.parse(body);
        posted.push(change);
        kept = [...(kept ?? []), ...change.mute.findings].filter((id) => !change.unmute.findings.includes(id));
      }
      return { kept: kept !== null, can_keep: true, path: '/runs/.torchtidy.json', mutes: { findings: kept ?? [], rules: [] } };
    };
    await openPage();
    await rows();
    fireEvent.click(screen.getByRole('button', { name: 'Mute' }));
    fireEvent.click(await screen.findByRole('button', { name: 'Keep them beside the runs' }));
    await screen.findByText(/Kept for everybody in/);
    expect(posted).toEqual([{ mute: { findings: ['big'], rules: [] }, unmute: { findings: [], rules: [] } }]);
    fireEvent.click(screen.getByRole('button', { name: 'Show again' }));
    await vi.waitFor(async () => expect((await titles()).length).toBe(3));
    expect(posted[1]).toEqual({ mute: { findings: [], rules: [] }, unmute: { findings: ['big'], rules: [] } });
  });

  it('that hide everything say so', async () => {
    localStorage.setItem('torchtidy.mutes', JSON.stringify({ findings: [], rules: ['first-rule'] }));
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    expect(await screen.findByText('All findings are muted')).toBeTruthy();
  });
});

describe('keys', () => {
  it('move with one tab stop, open with Enter, and come back with Esc', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    const [first, second] = await rows();
    expect((await rows()).map((row) => row.tabIndex)).toEqual([0, -1, -1]);
    first?.focus();
    key('ArrowDown');
    await vi.waitFor(() => expect(openTitle()).toBe('Small'));
    expect(document.activeElement).toBe(second);
    expect(second?.getAttribute('aria-selected')).toBe('true');
    key('Enter');
    await vi.waitFor(() => expect(document.activeElement?.id).toBe('finding-title'));
    key('Escape');
    await vi.waitFor(() => expect(document.activeElement).toBe(second));
  });

  it('go to the filter, and leave what is typed there alone', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    await rows();
    key('/');
    await vi.waitFor(() => expect(document.activeElement).toBe(screen.getByRole('searchbox')));
    key('j');
    expect(openTitle()).toBe('loss.item() waits');
  });

  it('open the help', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage();
    await rows();
    key('?');
    expect(await screen.findByText('Next finding')).toBeTruthy();
  });
});

describe('on a narrow page', () => {
  it('the detail takes the list’s place, and arrows alone do not open it', async () => {
    serveProfile(report({ findings: FINDINGS }), state());
    await openPage('', 600);
    (await rows())[0]?.focus();
    key('ArrowDown');
    expect(document.querySelector('article')).toBeNull();
    key('Enter');
    fireEvent.click(await screen.findByRole('button', { name: 'All findings' }));
    expect((await rows()).length).toBe(3);
    expect(document.querySelector('article')).toBeNull();
  });
});

describe('below the list', () => {
  const outcomes: Outcome[] = [
    { rule: 'passed', status: 'clean' }, { rule: 'skipped', status: 'not_checked', reason: 'No `stacks`.' },
    { rule: 'broken', status: 'failed', reason: 'IndexError' },
  ];
  const group = async (title: string) => {
    const summary = (await screen.findByText(title)).closest('details');
    if (!summary) throw new Error(`no group ${title}`);
    return summary;
  };

  it('are passed, not checked and failed checks, closed, with their reasons', async () => {
    serveProfile(report({ findings: FINDINGS, outcomes }), state(), [rule('passed'), rule('skipped')]);
    await openPage();
    expect((await group('Passed checks')).open).toBe(false);
    expect(within(await group('Not checked')).getByText('stacks').tagName).toBe('CODE');
    expect((await group('Failed checks')).textContent).toContain('IndexError');
    expect((await group('Passed checks')).textContent).toContain('Title of passed');
  });

  it('are open when nothing was found: never an empty page', async () => {
    serveProfile(report({ outcomes, ledger: noAccount() }), state());
    await openPage();
    expect((await group('Passed checks')).open).toBe(true);
    expect(await screen.findByRole('heading', { name: 'Nothing to fix was found' })).toBeTruthy();
  });

  it('that could not run are no sign that all is well', async () => {
    serveProfile(report({ outcomes: outcomes.filter(({ status }) => status === 'not_checked') }), state());
    await openPage();
    expect(await screen.findByRole('heading', { name: 'Nothing could be checked' })).toBeTruthy();
  });

  it('are told loudly when the recording lacks what they need', async () => {
    serveProfile(report({ findings: FINDINGS, recorded: ['shapes'], outcomes }), state(), [rule('skipped', { needs: ['stacks', 'shapes'] })]);
    await openPage();
    const notice = await screen.findByText('with_stack=True');
    expect(notice.closest('.notice')?.textContent).toContain('1 of 3 checks could not run: the profile has no stacks.');
  });

  it('have one count, of which those that lack data are a part', async () => {
    const skipped = ['one', 'two', 'three'].map((name) => ({ rule: name, status: 'not_checked' as const, reason: 'Too few steps.' }));
    serveProfile(report({ findings: FINDINGS, recorded: ['shapes', 'steps'], outcomes: [...outcomes.filter(({ status }) => status !== 'not_checked'), ...skipped] }), state(),
      [rule('one', { needs: ['stacks'] }), rule('two', { needs: ['stacks'] }), rule('three', { needs: ['steps'] })]);
    await openPage();
    const notice = await screen.findByText('with_stack=True');
    expect(notice.closest('.notice')?.textContent).toContain('3 of 5 checks could not run, 2 of them because the profile has no stacks.');
    expect((await group('Not checked')).querySelector('.count')?.textContent).toBe('3');
  });
});

it('tells places in files with long paths by their names', async () => {
  serveProfile(report({ findings: [finding('a', { places: [place({ file: '/very/long/path/model.py', line: 7 }), place()] })] }), state());
  await openPage();
  expect((await rows())[0]?.textContent).toContain('model.py:7 +1');
});

it('lists only the findings about a part of the time, and all again', async () => {
  const copies = ledgerEntry('copy', 'to_device', [9e6], { finding_id: 'b' });
  serveProfile(report({ ledger: ledger([copies]), findings: [finding('a'), finding('b', { category: 'host_device' })] }), state());
  await openPage();
  expect((await rows()).length).toBe(2);
  screen.getByRole('button', { name: /^Copies/ }).click();
  await waitFor(async () => expect((await rows()).length).toBe(1));
  expect(window.location.hash).toContain('q=host_device');
  screen.getByRole('button', { name: /^Copies/, pressed: true }).click();
  await waitFor(async () => expect((await rows()).length).toBe(2));
});

it.each([['serving_step', '✓ steps'], ['whole_trace', '✕ no steps'], ['repeating_unit', '✕ no steps']] as const)('says by the strip whether steps are known: %s', async (source, chip) => {
  serveProfile(report({ recorded: ['shapes'], ledger: ledger([ledgerEntry('host_work', null, [1e7])], { step_source: source }) }), state());
  await openPage();
  expect((await screen.findAllByText(/steps$/, { selector: '.chip' })).map(({ textContent }) => textContent)).toEqual([chip]);
});
