import { fireEvent, screen, within } from '@testing-library/preact';
import { expect, it, vi } from 'vitest';
import type { CpuFigures, FrameRow, ProfileReport, SlowCallRow } from '../api/types.gen';
import { report, state } from '../testing/fixtures';
import { openPage } from '../testing/page';
import { serveProfile } from '../testing/server';

const slow = (changes: Partial<SlowCallRow> = {}): SlowCallRow => ({
  operator: 'aten::mm', shapes: '4×4', start_ns: 5e6, own_ns: 900_000, median_ns: 100_000, threads: 1, contended: false, step: 'ProfilerStep#2',
  file: '/job/train.py', line: 42, ...changes,
});
const frame = (name: string, own: boolean): FrameRow => ({ file: '/job/train.py', line: 7, function: name, own_code: own, calls: 3, self_ns: 2e6 });

async function open(changes: Partial<CpuFigures> = {}, recorded: ProfileReport['recorded'] = ['shapes', 'steps']): Promise<HTMLElement> {
  const server = serveProfile(report({ recorded }), state());
  server.answers['cpu'] = () => ({
    cpu: { threads: 4, most_threads: 3, mean_threads: 1.46, slow_calls: [slow(), slow({ operator: 'aten::add', threads: 3, contended: true, line: null, file: '' })],
      frames: [frame('mine', true), frame('theirs', false)], ...changes },
  });
  server.answers['source'] = () => ({ file: '/job/train.py', available: true, reason: null, changed: false, lines: ['one', 'two'] });
  await openPage('torchtidy&p.torchtidy.view=cpu');
  await screen.findByRole('heading', { level: 1, name: 'CPU' });
  await vi.waitFor(() => expect(screen.getByRole('main').querySelector('p')).toBeTruthy());
  return screen.getByRole('main');
}

const table = (name: string) => within(screen.getByRole('region', { name })).getAllByRole('row').slice(1)
  .map((row) => [...row.children].map((cell) => cell.textContent));

it('says how many threads ran operators', async () => {
  expect((await open()).textContent).toContain('4 threads ran operators, at most 3 at the same time, 1.5 on average');
});

it('says nothing of threads at the same time where there is one', async () => {
  expect((await open({ threads: 1, most_threads: 1, mean_threads: 1 })).textContent).toContain('1 thread ran operators.');
});

it('lists slow calls with what they lost, and marks contention by sign and word', async () => {
  await open();
  expect(table('Table of slow calls')).toEqual([
    ['aten::mm', '900 µs', '100 µs', '800 µs', '4×4', '1 thread', '5.000 ms', 'ProfilerStep#2', 'train.py:42'],
    ['aten::add', '900 µs', '100 µs', '800 µs', '4×4', '▲ contended, 3 threads', '5.000 ms', 'ProfilerStep#2', '–'],
  ]);
});

it('lists Python’s own time, of all code or of the user’s alone', async () => {
  await open();
  expect(table('Table of Python functions').map(([name]) => name)).toEqual(['mine', 'theirs']);
  fireEvent.click(screen.getByRole('checkbox', { name: 'Only my code' }));
  await vi.waitFor(() => expect(table('Table of Python functions')).toEqual([['mine', '2.00 ms', '3', 'train.py:7', 'own']]));
});

it('says which option records Python’s time', async () => {
  expect((await open({ frames: null })).textContent).toContain('record with with_stack=True');
  expect(screen.queryByRole('checkbox')).toBeNull();
});

it('does not deny the stacks of a recording that has them without times', async () => {
  const text = (await open({ frames: null }, ['stacks', 'steps'])).textContent;
  expect(text).toContain('The recording has the stacks of operators, but no times of Python functions.');
  expect(text).not.toContain('no Python stacks');
});

it('says that no thread ran operators', async () => {
  expect((await open({ threads: 0, slow_calls: [], frames: null })).textContent).toContain('No thread of the host ran operators');
});

it('leads to the source, also of a file without findings', async () => {
  await open();
  const [first] = screen.getAllByRole('button', { name: 'train.py:42' });
  if (first) fireEvent.click(first);
  expect(await screen.findByRole('heading', { level: 1, name: '/job/train.py' })).toBeTruthy();
  expect(window.location.hash).toContain('p.torchtidy.line=42');
});
