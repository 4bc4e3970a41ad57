import { fireEvent, screen, within } from '@testing-library/preact';
import { expect, it, vi } from 'vitest';
import type { DeviceMemoryRow } from '../api/types.gen';
import { report, state } from '../testing/fixtures';
import { openPage } from '../testing/page';
import { serveProfile } from '../testing/server';

const MIB = 2 ** 20;
const device = (changes: Partial<DeviceMemoryRow> = {}): DeviceMemoryRow => ({
  device: 'cuda:0', basis: 'total_allocated', time_ns: [0, 100e6, 200e6], allocated_bytes: [MIB, 8 * MIB, 2 * MIB],
  reserved_bytes: [4 * MIB, 16 * MIB, 16 * MIB], peak_ns: 100e6, peak_bytes: 8 * MIB, peak_reserved_bytes: 16 * MIB, other_bytes: 2 * MIB, allocations: 1200,
  holders: [{ operator: 'aten::mm', file: '/job/train.py', line: 42, function: 'step', allocations: 3, bytes: 6 * MIB }],
  steps: [{ step: 'ProfilerStep#1', start_bytes: MIB, peak_bytes: 8 * MIB, end_bytes: 2 * MIB, kept: 1, kept_bytes: MIB }], ...changes,
});

async function open(devices: DeviceMemoryRow[], missing: string | null = null, problem: string | null = null): Promise<HTMLElement> {
  const server = serveProfile(report({ duration_ns: 400e6 }), state());
  server.answers['memory'] = () => ({ devices, missing, snapshot_problem: problem });
  await openPage('torchtidy&p.torchtidy.view=memory');
  await screen.findByRole('heading', { level: 1, name: 'Memory' });
  await vi.waitFor(() => expect(screen.getAllByRole('heading').length).toBeGreaterThan(1));
  return screen.getByRole('main');
}

const table = (name: string | RegExp) => within(screen.getByRole('region', { name })).getAllByRole('row').map((row) => [...row.children].map((cell) => cell.textContent));

it('draws allocated and reserved memory, and marks the peak', async () => {
  const page = await open([device()]);
  expect(page.textContent).toContain('Peak 8 MiB at 100 ms, 16 MiB reserved at most; 1,200 allocations; as the allocator counts');
  expect(screen.getByRole('img', { name: /Peak 8 MiB at 100 ms/ }).querySelectorAll('.plot-line').length).toBe(2);
  expect(page.querySelector('.plot-peak-text')?.textContent).toBe('8 MiB');
  expect([...page.querySelectorAll('.plot-mark')].map((mark) => mark.textContent)).toEqual(['0', '4 MiB', '8 MiB', '12 MiB', '16 MiB']);
  expect([...page.querySelectorAll('.plot-time')].map((mark) => mark.textContent)).toEqual(['0', '100 ms', '200 ms', '300 ms', '400 ms']);
});

it('has the curve as a table', async () => {
  await open([device()]);
  fireEvent.click(screen.getByRole('button', { name: 'Show as table' }));
  await vi.waitFor(() => expect(table('Memory of cuda:0 over time')).toEqual([
    ['From', 'Allocated', 'Reserved'], ['0.000 ms', '1.00 MiB', '4.00 MiB'], ['100.000 ms', '8.00 MiB', '16.0 MiB'], ['200.000 ms', '2.00 MiB', '16.0 MiB'],
  ]));
});

it('names what holds the peak, and what steps keep', async () => {
  const page = await open([device()]);
  expect(table(/^1 holder/)[1]).toEqual(['aten::mm', 'train.py:42 · step', '3', '6.00 MiB', '75.0 %']);
  expect(page.textContent).toContain('2 MiB of the peak (25 %) were allocated before the recording');
  expect(table('Steps of cuda:0')[1]).toEqual(['ProfilerStep#1', '1.00 MiB', '8.00 MiB', '2.00 MiB', '1 MiB', '1']);
});

it('claims no more than was recorded', async () => {
  const page = await open([device({ basis: 'running_sum', reserved_bytes: null, peak_reserved_bytes: null, holders: [], other_bytes: null, steps: [{ step: 's', start_bytes: 0, peak_bytes: 1, end_bytes: 0, kept: null, kept_bytes: null }] })]);
  expect(page.textContent).toContain('at least this much');
  expect(page.querySelectorAll('.plot-line').length).toBe(1);
  expect(page.textContent).toContain('nothing can be named');
  expect(table('Steps of cuda:0')[1]).toEqual(['s', '0 B', '1 B', '0 B', '–', '–']);
});

it('says why there is none', async () => {
  expect((await open([], 'No memory events; record with `profile_memory=True`.')).textContent).toContain('record with profile_memory=True');
});

it('stacks the kinds, and lists what holds the peak by kind', async () => {
  const page = await open([device({
    kinds_ns: [0, 100e6], kinds: [{ kind: 'earlier', bytes: [MIB, 2 * MIB], peak_bytes: 2 * MIB }, { kind: 'activation', bytes: [0, 6 * MIB], peak_bytes: 6 * MIB }],
    holders: [
      { operator: 'aten::mm', file: '', line: null, function: '', allocations: 3, bytes: 5 * MIB, kind: 'activation' },
      { operator: 'aten::to', file: '', line: null, function: '', allocations: 1, bytes: MIB, kind: 'input' },
    ],
  })]);
  expect(page.querySelectorAll('.kind-area').length).toBe(2);
  expect(table('Kinds of memory on cuda:0').map((row) => row.slice(0, 4))).toEqual([
    ['Kind', 'At the peak', 'Of the peak', 'Most at any time'], ['Activations', '6.00 MiB', '75.0 %', '6.00 MiB'], ['From before the recording', '2.00 MiB', '25.0 %', '2.00 MiB'],
  ]);
  expect(table(/^2 holders/).length).toBe(3);
  fireEvent.click(screen.getByRole('button', { name: 'Activations' }));
  await vi.waitFor(() => expect(table(/^1 holder/)[1]).toEqual(['aten::mm', '–', 'Activations', '3', '5.00 MiB', '62.5 %']));
});

it('shows a memory snapshot over its own time, with the stacks of what holds its peak', async () => {
  const holder = { operator: 'gelu (functional.py:200)', file: '/u/model.py', line: 21, function: 'forward', allocations: 2, bytes: 6 * MIB, kind: 'activation' as const, stack: ['gelu (functional.py:200)', 'forward (model.py:21)'] };
  const kinds = [{ kind: 'parameter' as const, bytes: [MIB, MIB, MIB], peak_bytes: MIB }, { kind: 'activation' as const, bytes: [0, 7 * MIB, MIB], peak_bytes: 7 * MIB }];
  const page = await open([device({ device: 'cuda:0, memory snapshot', basis: 'snapshot', failures: 2, holders: [holder], kinds, kinds_ns: [0, 100e6, 200e6], steps: [] })]);
  expect(page.textContent).toContain('1,200 allocations, 2 allocations failed for want of memory; by the allocator’s own history');
  expect([...page.querySelectorAll('.plot-time')].at(-1)?.textContent).toBe('200 ms');
  expect(page.textContent).toContain('2 MiB of the peak (25 %) have no recorded stack');
  expect(page.querySelector('.kind-parameter')).not.toBeNull();
  expect([...page.querySelectorAll('.holder-stack li')].map((frame) => frame.textContent)).toEqual(holder.stack);
});

it('says why a memory snapshot is not used', async () => {
  const page = await open([device()], null, 'The memory snapshot `m.pickle` is not used. It is not a complete pickle.');
  expect(page.textContent).toContain('m.pickle is not used. It is not a complete pickle.');
  expect(page.textContent).toContain('Peak 8 MiB');
});
