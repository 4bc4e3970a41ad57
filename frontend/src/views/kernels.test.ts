import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { DeviceKernelRow, KernelFamilyRow } from '../api/types.gen';
import { report, state } from '../testing/fixtures';
import { openPage } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

beforeEach(() => { // tests have no layout: a pane of this height has visible rows
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});

const row = (name: string, changes: Partial<DeviceKernelRow> = {}): DeviceKernelRow => ({
  key: name, family: 'matrix', operator: 'aten::mm', name, count: 36, total_ns: 2e6, share: 0.25, mean_ns: 55_600, flops_per_second: 9.59e13,
  bytes_per_second: 3.03e12, roofline: 0.571, tensor_cores: true, replayed: 36, ...changes,
});
const FAMILIES: KernelFamilyRow[] = [
  { family: 'matrix', label: 'Matrix products', count: 36, total_ns: 2e6, share: 0.25, flops_per_second: 9.59e13, bytes_per_second: 3.03e12, roofline: 0.571, rated_share: 1 },
  { family: 'to_host', label: 'Copies to the host', count: 1, total_ns: 6e6, share: 0.75, flops_per_second: null, bytes_per_second: null, roofline: null, rated_share: 0 },
];
const ROWS = [row('Cijk_MT256', { known_by: 'renamed' }), row('Memcpy DtoH', { family: 'to_host', operator: '', flops_per_second: null, bytes_per_second: null, roofline: null })];

async function open(missing: string | null = null, empty: string[] = []): Promise<TestServer> {
  const server = serveProfile(report({ recorded: ['shapes', 'device', 'steps'] }), state());
  const [rows, families] = missing === null ? [ROWS, FAMILIES] : [[], []];
  server.answers['kernels'] = () => ({ total: rows.length, offset: 0, rows, families, missing, empty });
  await openPage('torchtidy&p.torchtidy.view=kernels');
  await screen.findByRole('heading', { level: 1, name: 'Kernels' });
  return server;
}

const cells = (each: HTMLElement | null): (string | null)[] => (each ? within(each).getAllByRole('cell').map((cell) => cell.textContent) : []);
const lastAsked = (server: TestServer) => new URLSearchParams(server.asked.findLast((each) => each.startsWith('kernels'))?.split('?')[1]);

describe('the kernels', () => {
  it('are rows with their rates, and without those that are not known', async () => {
    await open(null, ['known_by']);
    const first = (await screen.findByRole('button', { name: 'Cijk_MT256' })).closest<HTMLElement>('[role=row]');
    expect(cells(first)).toEqual(['Cijk_MT256', 'aten::mm', 'Matrix products', '36', '2.00 ms', '25.0 %', '55.6 µs', '95.9 TFLOP/s', '3.03 TB/s', '57.1 %']);
    const second = screen.getByRole('button', { name: 'Memcpy DtoH' }).closest<HTMLElement>('[role=row]');
    expect(cells(second).slice(1, 3)).toEqual(['–', 'Copies to the host']);
    expect(cells(second).slice(7)).toEqual(['–', '–', '–']);
  });

  it('say how replayed ones are known', async () => {
    await open();
    await screen.findByRole('columnheader', { name: 'From capture' });
    expect(screen.getAllByRole('row').slice(-2).map((each) => cells(each).at(-1))).toEqual(['by its place', '–']);
  });

  it('are sorted, filtered and narrowed to a family by the server', async () => {
    const server = await open();
    fireEvent.click(await screen.findByRole('button', { name: 'Roofline' }));
    await vi.waitFor(() => expect(lastAsked(server).get('sort')).toBe('-roofline'));
    fireEvent.input(screen.getByRole('searchbox', { name: 'Filter kernels' }), { target: { value: 'cijk' } });
    await vi.waitFor(() => expect(lastAsked(server).get('filter')).toBe('cijk'));
    fireEvent.change(screen.getByRole('combobox', { name: 'Show' }), { target: { value: 'matrix' } });
    await vi.waitFor(() => expect(lastAsked(server).get('family')).toBe('matrix'));
  });

  it('have a table of their families', async () => {
    await open();
    const table = await screen.findByRole('region', { name: 'Families' });
    expect(within(table).getAllByRole('row').slice(1).map((each) => [...each.children].map((cell) => cell.textContent))).toEqual([
      ['Matrix products', '36', '2.00 ms', '25.0 %', '95.9 TFLOP/s', '3.03 TB/s', '57.1 %', '100 %'],
      ['Copies to the host', '1', '6.00 ms', '75.0 %', '–', '–', '–', '0 %'],
    ]);
  });

  it('are missing with a reason', async () => {
    await open('Record the device.');
    expect((await screen.findByText('Record the device.')).textContent).toBe('Record the device.');
  });
});
