import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { finding, lines, place, report, source, state } from '../testing/fixtures';
import { key, openPage } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

const FINDINGS = [
  finding('a', { places: [place({ line: 42, end_line: 42, duration_ns: 4e6 }), place({ line: 50, end_line: 50, duration_ns: 1e6 })] }),
  finding('b', { places: [place({ line: 60, end_line: 60 })] }),
];

async function open(more: (server: TestServer) => void = () => undefined): Promise<TestServer> {
  const server = serveProfile(report({ findings: FINDINGS }), state());
  server.answers['source'] = () => source();
  server.answers['lines'] = () => lines();
  more(server);
  await openPage('torchtidy&p.torchtidy.view=source&p.torchtidy.finding=a&p.torchtidy.file=%2Fjob%2Ftrain.py&p.torchtidy.line=42');
  await vi.waitFor(() => expect(row(42).textContent).toContain('line 42'));
  return server;
}

const row = (line: number): Element => {
  const found = [...document.querySelectorAll('.code-line')].find((each) => each.querySelector('.code-number')?.textContent === String(line));
  if (!found) throw new Error(`line ${line} is not drawn`);
  return found;
};
const cost = (line: number): string => row(line).querySelector('.gutter')?.textContent ?? '';

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(2000); // all 100 lines are visible
});

describe('the gutter', () => {
  it('has what a line costs per step, its share, its passes, and all in words', async () => {
    await open();
    await vi.waitFor(() => expect(cost(42)).toContain('40.0 ms'));
    const words = '40 ms per step, 40 % of the step time: forward 20 ms, backward 20 ms; 36 calls in the recording';
    expect(cost(42)).toBe(`40.0 ms40.0 %20.0 ms20.0 msLine costs ${words}. `);
    expect(row(42).querySelector('.gutter')?.getAttribute('title')).toBe(words);
    expect([...document.querySelectorAll('.gutter-heads span > span')].map((each) => each.textContent)).toEqual(['', 'Per step', 'Share', 'forward', 'backward', 'optimizer', 'other']);
    expect(row(41).querySelector('.gutter-track > span')?.getAttribute('style')).toBe('width: 25%;');
    expect(cost(43)).toBe('');
    expect(row(43).querySelector('.gutter')).toBeTruthy();
  });

  it('changes to what the open finding costs on its lines', async () => {
    await open();
    fireEvent.click(screen.getByRole('button', { name: 'This finding' }));
    await vi.waitFor(() => expect(cost(42)).toBe('4.00 ms4.00 %Line costs 4 ms per step in 12 matches; 4 % of the step time. '));
    expect(cost(50)).toContain('1.00 ms');
    expect(cost(41)).toBe('');
    expect(screen.getByRole('button', { name: 'This finding' }).getAttribute('aria-pressed')).toBe('true');
    fireEvent.click(screen.getByRole('button', { name: 'All calls' }));
    await vi.waitFor(() => expect(cost(41)).toContain('10.0 ms'));
  });

  it('says how much time is on lines that are not known', async () => {
    await open((server) => { server.answers['lines'] = () => lines({ functions: ['forward', '<lambda>', 'a', 'b', 'c'], functions_ns: [9e6, 6e6, 3e6, 3e6, 3e6] }); });
    expect((await screen.findByText(/lines that are not known/)).textContent).toBe('Per step, on lines that are not known: forward 3 ms, <lambda> 2 ms, a 1 ms and 2 further functions.');
    fireEvent.click(screen.getByRole('button', { name: 'This finding' }));
    await vi.waitFor(() => expect(screen.queryByText(/lines that are not known/)).toBeNull());
    expect(document.querySelector('.gutter-heads')).toBeNull();
  });

  it('leaves the marks of findings where they are', async () => {
    await open();
    expect([...document.querySelectorAll('.marked .code-number')].map((each) => each.textContent)).toEqual(['42', '50', '60']);
    key('j');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=50'));
    key('k');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=42'));
  });

  it('is walked from the costliest line down', async () => {
    await open();
    await vi.waitFor(() => expect(cost(41)).toContain('10.0 ms'));
    key('h');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=41'));
    key('h');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=60'));
    key('h');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=42'));
  });

  it('says where nothing could be placed, and what was too much', async () => {
    await open((server) => { server.answers['lines'] = () => ({ file: '/job/train.py', costs: null }); });
    expect(await screen.findByText('No recorded call could be placed on a line of this file.')).toBeTruthy();
    await open((server) => { server.answers['lines'] = () => lines({ left_out: ['forward', 'step'] }); });
    expect((await screen.findByText(/Too many calls/)).textContent).toBe('Too many calls to place them all: lines in forward, step have no costs.');
    expect(cost(42)).toContain('40.0 ms');
  });

  it('is asked for once per file and recording', async () => {
    const server = await open();
    await vi.waitFor(() => expect(cost(42)).toContain('40.0 ms'));
    key('j');
    await vi.waitFor(() => expect(window.location.hash).toContain('line=50'));
    expect(server.asked.filter((each) => each.startsWith('lines'))).toEqual(['lines?run=job&worker=host_1&span=1&file=%2Fjob%2Ftrain.py']);
  });

  it('sets what the server sends as text', async () => {
    await open((server) => { server.answers['lines'] = () => lines({ left_out: ['<img src=x>'] }); });
    const note = await screen.findByText(/Too many calls/);
    expect(within(note).getByText('<img src=x>')).toBeTruthy();
    expect(document.querySelector('img[src]')).toBeNull();
  });
});

describe('an address without a line', () => {
  const opened = async (address: string): Promise<string | null | undefined> => {
    const server = serveProfile(report({ findings: FINDINGS }), state());
    server.answers['source'] = () => source();
    server.answers['lines'] = () => lines();
    await openPage(`torchtidy&${address}`);
    fireEvent.click(await screen.findByRole('tab', { name: 'Source' }));
    return vi.waitFor(() => {
      const current = document.querySelector('.code-line.current .code-number');
      expect(current).not.toBeNull();
      return current?.textContent;
    });
  };

  it.each([['b', '60'], ['a', '42']])('opens the file at the place of the open finding %s, not at the first marked line', async (id, line) => {
    expect(await opened(`p.torchtidy.finding=${id}`)).toBe(line);
  });

  it('forgets the line of the finding before', async () => {
    expect(await opened('p.torchtidy.finding=a')).toBe('42');
    fireEvent.click(screen.getByRole('tab', { name: 'Findings' }));
    fireEvent.click(await screen.findByRole('option', { name: /Finding b/ }));
    fireEvent.click(screen.getByRole('tab', { name: 'Source' }));
    await vi.waitFor(() => expect(document.querySelector('.code-line.current .code-number')?.textContent).toBe('60'));
  });
});

describe('the other files of the recording', () => {
  const files = [['/job/model.py', 12, 200e6], ['/job/train.py', 42, 120e6], ['/job/<b>data.py', 3, 1e6]] as const;

  it('are listed below those with findings, the costliest first, and open at their costliest line', async () => {
    const server = await open(({ answers }) => {
      answers['files'] = () => ({ wall_ns: 300e6, steps: 2, step_ns: 250e6, files: files.map(([file, line, time]) => ({ file, line, host_ns: time, device_ns: 0, total_ns: time })) });
    });
    await screen.findByRole('heading', { name: 'Other files 2' });
    const others = screen.getAllByRole('button').filter((each) => each.classList.contains('other-file'));
    expect(others.map((each) => each.textContent)).toEqual(['model.py100 ms', '<b>data.py500 µs']);
    expect(others[0]?.getAttribute('title')).toBe('/job/model.py: line 12 takes most of its time, 100 ms per step');
    if (others[0]) fireEvent.click(others[0]);
    await vi.waitFor(() => expect(window.location.hash).toContain('file=%2Fjob%2Fmodel.py'));
    expect(window.location.hash).toContain('line=12');
    await vi.waitFor(() => expect(server.asked).toContain('source?run=job&worker=host_1&span=1&file=%2Fjob%2Fmodel.py'));
    expect(others[0]?.getAttribute('aria-current')).toBe('true');
  });

  it('can be chosen on a narrow page, which has no list beside the source', async () => {
    await open(({ answers }) => { answers['files'] = () => ({ wall_ns: 300e6, steps: 2, step_ns: 250e6, files: files.map(([file, line, time]) => ({ file, line, host_ns: time, device_ns: 0, total_ns: time })) }); });
    const { narrow } = await import('../state/viewport');
    narrow.value = true;
    const select = await screen.findByRole('combobox', { name: 'File' });
    await vi.waitFor(() => expect(within(select).getAllByRole('option').map((each) => each.textContent)).toEqual(['train.py', 'model.py', '<b>data.py']));
    fireEvent.change(select, { target: { value: '/job/model.py' } });
    await vi.waitFor(() => expect(window.location.hash).toContain('file=%2Fjob%2Fmodel.py'));
    expect(window.location.hash).toContain('line=12');
  });

  it('leave no heading where there are none', async () => {
    await open(({ answers }) => { answers['files'] = () => ({ wall_ns: 1, steps: 1, step_ns: 1, files: [{ file: '/job/train.py', line: 1, host_ns: 1, device_ns: 0, total_ns: 1 }] }); });
    expect(screen.queryByRole('heading', { name: /Other files/ })).toBeNull();
  });
});
