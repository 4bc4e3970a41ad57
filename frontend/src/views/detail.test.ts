import { fireEvent, screen, within } from '@testing-library/preact';
import { describe, expect, it, vi } from 'vitest';
import type { Finding } from '../api/types.gen';
import { eventRow, finding, place, report, rule, saving, source, stack, state } from '../testing/fixtures';
import { key, openPage, rows } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

async function open(shown: Finding, more: (server: TestServer) => void = () => undefined, unfolded = true): Promise<HTMLElement> {
  const server = serveProfile(report({ findings: [shown] }), state(), [rule('first-rule', {
    sections: [
      { heading: 'Why it is slow', text: 'It waits.' }, { heading: 'Example', text: '```python\nx\n```' },
      { heading: 'When it stays quiet', text: 'On the CPU.' },
    ],
    thresholds: [{ name: 'min-bytes', default: 4096, reason: 'less fits into `one` page' }],
  })]);
  server.answers['source'] = () => source();
  more(server);
  await openPage('', 1400, unfolded);
  await rows();
  return screen.getByRole('main');
}

describe('the head', () => {
  it('tells what a fix saves, how that is known, and what the finding costs', async () => {
    const main = await open(finding('a', { saving: saving(18_400_000, { low_ns: 12_000_000, high_ns: 21_300_000, speedup: 1.18, basis: ['replayed', 'measured'] }), cost_ns: 22_100_000, share: 0.175, known_by: 'unique' }));
    expect(main.textContent).toContain('Fix saves about 18.4 ms of 100 ms per step, 1.18× speed');
    expect(main.textContent).toContain('At least 12 ms, at most 21.3 ms · computed from the timeline, measured');
    expect(main.textContent).toContain('22.1 ms per step17.5 % of the step time');
    expect(main.textContent).toContain('1 place in the sourceoperators from the graph’s capture: unique');
  });

  it('copies the finding and the link', async () => {
    const copied: string[] = [];
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: (text: string) => { copied.push(text); return Promise.resolve(); } } });
    await open(finding('a', { message: '`x` waits' }));
    fireEvent.click(screen.getByRole('button', { name: 'Copy as Markdown' }));
    fireEvent.click(screen.getByRole('button', { name: 'Copy link' }));
    await vi.waitFor(() => expect(copied.length).toBe(2));
    expect(copied[0]).toContain('### `x` waits');
    expect(copied[1]).toContain('http');
    expect(new URL(copied[1] ?? '').hostname).toBe('localhost');
    expect(await screen.findByText(/^Link copied\. It opens on this machine only/)).toBeTruthy();
  });

  it('copies for an assistant, with the source where it is there', async () => {
    const copied: string[] = [];
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: (text: string) => { copied.push(text); return Promise.resolve(); } } });
    await open(finding('a', { places: [place({ line: 42, end_line: 42, precision: 'exact' })] }));
    fireEvent.click(screen.getByRole('button', { name: 'Copy for an assistant' }));
    await vi.waitFor(() => expect(copied.length).toBe(1));
    expect(copied[0]).toContain('from line 34:\n\n```python\nline 34\n');
    expect(copied[0]).toContain('line 50\n```');
    expect(copied[0]).toMatch(/\*\*Environment:\*\* step of 100 ms\.\n$/);
  });

  it('copies for an assistant without a source that is not there', async () => {
    const copied: string[] = [];
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: (text: string) => { copied.push(text); return Promise.resolve(); } } });
    const settings = { versions: { torch: '2.13.0' }, threads: { intra_op: 4 } };
    const shown = report({ findings: [finding('a')], devices: [{ kind: 'cuda', index: 0, name: 'A100', compute_capability: '8.0' }], settings });
    await open(finding('a'), (server) => {
      server.answers['source'] = () => source({ available: false, lines: [] });
      server.answers['report'] = () => ({ states: [state()], report: { run: 'job', profiles: [shown] }, ranks: [0], pending: 0 });
    });
    fireEvent.click(screen.getByRole('button', { name: 'Copy for an assistant' }));
    await vi.waitFor(() => expect(copied.length).toBe(1));
    expect(copied[0]).not.toContain('**Source**');
    expect(copied[0]).toContain('**Environment:** torch 2.13.0; A100; step of 100 ms; Threads in an operator 4.');
  });
});

describe('what to do', () => {
  it('is the title, the diagnosis stands below it', async () => {
    await open(finding('a', { action: 'Pass `fused`', message: '`Adam` is slow' }));
    const title = screen.getByRole('heading', { level: 1, name: 'Pass fused' });
    expect(title.nextElementSibling?.textContent).toBe('Adam is slow');
    expect((await rows())[0]?.querySelector('.row-title')?.textContent).toBe('Pass fused');
  });

  it('has the line with its neighbours where the code cannot be changed, and why', async () => {
    const main = await open(finding('a', { code_fixes: { changes: [], reason: 'The call has `**options`.' } }));
    const code = await screen.findByRole('region', { name: 'The line and its neighbours' });
    expect([...code.querySelectorAll('.code-number')].map((number) => number.textContent)).toEqual(['41', '42', '43']);
    expect(main.querySelector('.do-first')?.textContent).toContain('The call has **options.');
  });

  it('has the change of the place that is shown, its effect and what to check', async () => {
    const change = {
      finding: 'a', rule: 'first-rule', file: '/job/train.py', line: 42, saving_ns: null, safety: 'same up to rounding', needs_review: true,
      check: 'No `hook` reads it.', diff: '--- a/train.py\n+++ b/train.py\n@@ -42 +42 @@\n-Adam(p)\n+Adam(p, fused=True)\n', replacements: [],
    };
    const main = await open(finding('a', { code_fixes: { changes: [change] }, places: [place({ line: 42 }), place({ line: 50 })] }));
    const code = screen.getByRole('region', { name: 'Change of train.py' });
    expect([...code.querySelectorAll('.code-text')].map((line) => line.textContent)).toEqual(['@@ -42 +42 @@', '-Adam(p)', '+Adam(p, fused=True)']);
    expect(main.textContent).toContain('Effect: same up to rounding. Check first: No hook reads it.');
    key(']');
    await screen.findByRole('region', { name: 'The line and its neighbours' });
    expect(screen.queryByRole('region', { name: 'Change of train.py' })).toBeNull();
  });

  it('says when a saving may come to nothing', async () => {
    const main = await open(finding('a', { saving: saving(4_000_000, { low_ns: 0, high_ns: 6_000_000 }) }));
    expect(main.textContent).toContain('At most 6 ms; nothing if other work fills the time that becomes free');
  });
});

describe('why', () => {
  it('and the events are folded below the fix until they are asked for, and then stay open', async () => {
    const main = await open(finding('a'), () => undefined, false);
    expect(main.textContent).toContain('Do it once');
    const [why, evidence] = ['Why', 'On the timeline'].map((title) => within(main).getByText(title).closest('details'));
    expect([why?.open, evidence?.open, main.textContent?.includes('It waits.')]).toEqual([false, false, false]);
    if (why) why.open = true;
    await vi.waitFor(() => expect(main.textContent).toContain('It waits.'));
    expect(window.localStorage.getItem('torchtidy.unfolded')).toBe('why');
  });

  it('has the finding’s own numbers and the reason from its page, the rest of the page folded', async () => {
    const main = await open(finding('a', { details: [{ kind: 'note', text: '64 reads, limit `5`.' }, { kind: 'code_change', before: 'b', after: 'a' }] }));
    expect(main.textContent).toContain('64 reads, limit 5.');
    expect(within(main).getByText('It waits.').closest('details')?.open).toBe(true); // opened before, and still open
    expect(within(main).getByText('On the CPU.').closest('details')?.open).toBe(false);
    const name = within(main).getByText('min-bytes = 4096');
    expect(name.closest('p')?.textContent).toBe('min-bytes = 4096: less fits into one page.');
    expect(name.closest('details')?.open).toBe(false);
    expect(within(main).queryByText('Example')).toBeNull();
  });
});

describe('source', () => {
  it('shows the lines around the place, with the matched one marked', async () => {
    await open(finding('a', { places: [place({ line: 42 })] }));
    const code = await screen.findByRole('region', { name: 'train.py, lines 30 to 54' });
    expect(code.querySelectorAll('.code-line').length).toBe(25);
    expect([...code.querySelectorAll('.marked .code-number')].map((number) => number.textContent)).toEqual(['42']);
  });

  it('stops at the ends of the file', async () => {
    await open(finding('a', { places: [place({ line: 1, end_line: 1 }), place({ line: 99, end_line: 99 })] }));
    expect(await screen.findByRole('region', { name: 'train.py, lines 1 to 13' })).toBeTruthy();
    key(']');
    expect(await screen.findByRole('region', { name: 'train.py, lines 87 to 100' })).toBeTruthy();
  });

  it('says that a definition is not the calling line', async () => {
    const main = await open(finding('a', { places: [place({ precision: 'definition' })] }));
    expect(main.textContent).toContain('The call is inside this function.');
  });

  it('says when the line is in an installed package', async () => {
    const main = await open(finding('a', { places: [place({ own_code: false })] }));
    expect(main.textContent).toContain('installed package');
  });

  it('lists all places and changes between them by click and key', async () => {
    const main = await open(finding('a', { places: [place({ line: 42 }), place({ line: 7, function: 'other' }), place({ line: 8 })] }));
    const pressed = () => within(main).getAllByRole('button', { pressed: true }).map((button) => button.textContent);
    expect(pressed()[0]).toContain('train.py:42');
    key(']');
    await vi.waitFor(() => expect(pressed()[0]).toContain('train.py:7'));
    fireEvent.click(within(main).getByRole('button', { name: /train\.py:8/ }));
    await vi.waitFor(() => expect(pressed()[0]).toContain('train.py:8'));
    key('[');
    await vi.waitFor(() => expect(pressed()[0]).toContain('train.py:7'));
  });

  it('says which lines are as likely, and marks each of them', async () => {
    const main = await open(finding('a', { places: [place({ line: 40, end_line: 44, ties: [40, 44], precision: 'aligned' }), place({ line: 50, end_line: 50 })] }));
    expect(main.textContent).toContain('It is one of lines 40, 44: the recorded calls fit them equally well.');
    expect(within(main).getByRole('button', { pressed: true }).textContent).toContain('one of lines 40, 44');
    const code = await screen.findByRole('region', { name: 'train.py, lines 28 to 56' });
    expect([...code.querySelectorAll('.marked .code-number')].map((number) => number.textContent)).toEqual(['40', '44', '50']);
  });

  it('says what called the place, nearest first, the far ones folded', async () => {
    const main = await open(finding('a', { places: [place({ line: 42 }), place({ line: 50 })] }), (server) => {
      server.answers['stack'] = (query) => (query.get('place') === '1' ? stack({ function: 'other' })
        : { ...stack({ function: 'loop', line: 80 }, { function: 'main' }, { function: 'run' }, { function: 'script' }), more: 7 });
    });
    const caller = await within(main).findByRole('button', { name: 'loop train.py:80' });
    expect(caller.title).toBe('/job/train.py, line 80 (matched line)');
    expect([...main.querySelectorAll('.callers > ol li')].map((each) => each.textContent)).toEqual(['loop train.py:80', 'main train.py:80', 'run train.py:80']);
    const far = within(main).getByText('8 further out').closest('details');
    expect(far?.open).toBe(false);
    expect(far?.textContent).toContain('and 7 more');
    key(']');
    expect(await within(main).findByRole('button', { name: 'other train.py:80' })).toBeTruthy();
    fireEvent.click(within(main).getByRole('button', { name: 'other train.py:80' }));
    expect(await screen.findByRole('heading', { name: '/job/train.py' })).toBeTruthy();
    expect(window.location.hash).toContain('line=80');
  });

  it('opens the line in the editor that was chosen, and remembers which', async () => {
    const main = await open(finding('a'), (server) => { server.answers['source'] = () => source({ path: '/home/me/my job/train.py' }); });
    const link = await within(main).findByRole('link', { name: 'Open in VS Code' });
    expect(link.getAttribute('href')).toBe('vscode://file/home/me/my%20job/train.py:42');
    expect(link.getAttribute('target')).toBe('_blank');
    fireEvent.change(within(main).getByRole('combobox', { name: 'Editor' }), { target: { value: 'pycharm' } });
    expect(within(main).getByRole('link', { name: 'Open in PyCharm' }).getAttribute('href')).toBe('pycharm://open?file=%2Fhome%2Fme%2Fmy%20job%2Ftrain.py&line=42');
    expect(localStorage.getItem('torchtidy.editor')).toBe('pycharm');
    localStorage.clear();
  });

  it('offers no editor where the server does not say where the file lies', async () => {
    const main = await open(finding('a'), (server) => { server.answers['source'] = () => source({ path: null }); });
    await screen.findByRole('region', { name: 'train.py, lines 30 to 54' });
    expect(within(main).queryByRole('link', { name: /Open in/ })).toBeNull();
  });

  it('tells why a file is not available', async () => {
    const main = await open(finding('a'), (server) => {
      server.answers['source'] = () => source({ available: false, lines: [], reason: 'Set `--torchtidy_source_roots`.' });
    });
    expect((await within(main).findByText('--torchtidy_source_roots')).tagName).toBe('CODE');
  });

  it('warns when the file is newer than the recording', async () => {
    const main = await open(finding('a'), (server) => { server.answers['source'] = () => source({ changed: true }); });
    expect(await within(main).findByText(/newer than the recording/)).toBeTruthy();
  });

  it('says when no line is known', async () => {
    const main = await open(finding('a', { places: [] }));
    expect(main.textContent).toContain('no line is known');
  });

  it('opens the whole file at the line', async () => {
    await open(finding('a', { places: [place({ line: 42 })] }));
    fireEvent.click(await screen.findByRole('button', { name: 'Show whole file' }));
    expect(await screen.findByRole('heading', { name: '/job/train.py' })).toBeTruthy();
    expect(window.location.hash).toContain('view=source');
    expect(window.location.hash).toContain('line=42');
    key('Escape');
    expect(await screen.findByRole('heading', { name: 'Finding a' })).toBeTruthy();
  });
});

it('shows the fix as before and after, with what to mind', async () => {
  const main = await open(finding('a', { fix: 'Use `foreach=True`', details: [{ kind: 'code_change', before: 'old()\n', after: 'new()\n', caveat: 'Changes numerics.' }] }));
  expect(within(main).getByRole('region', { name: 'Before' }).textContent).toContain('old()');
  expect(within(main).getByRole('region', { name: 'After' }).textContent).toContain('new()');
  expect(main.textContent).toContain('Changes numerics.');
});

it('shows matched events from the server, sorted there', async () => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(300);
  const main = await open(finding('a'), (server) => {
    server.answers['events'] = (query) => ({ total: 1, offset: 0, rows: [eventRow({ name: `sorted by ${query.get('sort') ?? ''}` })] });
  });
  expect(await within(main).findByText('sorted by start')).toBeTruthy();
  fireEvent.click(within(main).getByRole('button', { name: 'Duration' }));
  expect(await within(main).findByText('sorted by -duration')).toBeTruthy();
  expect(within(main).getByRole('columnheader', { name: 'Duration' }).getAttribute('aria-sort')).toBe('descending');
});

it('shows a detail of a kind it does not know as sent, and asks for a reload', async () => {
  const newer: Finding = JSON.parse(JSON.stringify({ ...finding('a'), details: [{ kind: 'hologram', x: 1 }] }));
  const main = await open(newer);
  expect(main.textContent).toContain('This detail needs a newer page. Reload.');
  expect(main.textContent).toContain('hologram');
});

it('sets all text of the report as text', async () => {
  const bad = '<img src=x onerror=alert(1)>';
  await open(finding('a', {
    message: bad, fix: bad, places: [place({ function: bad, file: `/a/${bad}.py` })],
    details: [{ kind: 'note', text: bad }, { kind: 'code_change', before: bad, after: bad, caveat: bad }],
  }));
  expect(document.querySelector('img[src]')).toBeNull();
});
