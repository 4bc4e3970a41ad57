import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { OperatorRow } from '../api/types.gen';
import { finding, operatorRow, report, state } from '../testing/fixtures';
import { key, openPage } from '../testing/page';
import { Refusal, serveProfile, type TestServer } from '../testing/server';

beforeEach(() => { // tests have no layout: a pane of this height has visible rows
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});

const ROWS = [
  operatorRow('mm', { name: 'aten::mm', findings: ['a'], file: '/job/train.py', line: 42, function: 'step' }),
  operatorRow('add', { name: 'aten::add', kernels: [{ name: 'vectorized_add', kind: 'elementwise', calls: 7, total_ns: 3e6, tensor_cores: false }] }),
];

async function open(hash = '', rows: OperatorRow[] = ROWS, missing: string | null = null, leftOut = 0): Promise<TestServer> {
  const server = serveProfile(report({ findings: [finding('a')], recorded: ['shapes', 'device', 'steps'] }), state());
  server.answers['operators'] = (query) => ({ group: query.get('group') ?? 'name', total: rows.length, offset: 0, rows, left_out: leftOut, missing, empty: ['known_by'] });
  await openPage(`torchtidy&p.torchtidy.view=operators${hash}`);
  await screen.findByRole('heading', { level: 1, name: 'Operators' });
  return server;
}

const cells = (row: HTMLElement): (string | null)[] => within(row).getAllByRole('cell').map((cell) => cell.textContent);
const lastAsked = (server: TestServer) => new URLSearchParams(server.asked.findLast((each) => each.startsWith('operators'))?.split('?')[1]);

describe('the operators', () => {
  it('are rows with their figures and units', async () => {
    const server = await open();
    const row = (await screen.findByRole('button', { name: 'aten::mm' })).closest<HTMLElement>('[role=row]');
    expect(row && cells(row)).toEqual(['aten::mm', '12', '2.00 ms', '3.00 ms', '5.00 ms', '6.00 ms', 'yes', '1.50 TFLOP/s', '50.0 %']);
    expect(Object.fromEntries(lastAsked(server))).toEqual({
      run: 'job', worker: 'host_1', span: '1', group: 'name', offset: '0', limit: '100', sort: '-device_self_ns', kind: 'operator',
    });
  });

  it('have shares of the time that bounds the job, and no column without a value', async () => {
    const server = await open();
    server.answers['operators'] = () => ({ group: 'shape', total: 1, offset: 0, rows: ROWS.slice(0, 1), left_out: 0, missing: null, host_ns: 4e6, device_ns: 20e6, empty: ['roofline', 'flops_per_second', 'tensor_cores', 'slow_calls', 'median_ns', 'shapes', 'known_by'] });
    fireEvent.click(screen.getByRole('button', { name: 'Name and shapes' }));
    await vi.waitFor(() => expect(screen.getAllByRole('columnheader').map((each) => each.textContent)).toEqual(['Operator', 'Calls', 'Host self', 'Host total', 'Device self▾', 'Device total']));
    expect(screen.getByText('5.00 ms · 25.0 %')).toBeTruthy();
  });

  it('are sorted by the server', async () => {
    const server = await open();
    fireEvent.click(await screen.findByRole('button', { name: 'Host self' }));
    await vi.waitFor(() => expect(lastAsked(server).get('sort')).toBe('-host_self_ns'));
    expect((await screen.findByRole('columnheader', { name: /Host self/ })).getAttribute('aria-sort')).toBe('descending');
    fireEvent.click(await screen.findByRole('button', { name: /^Operator/ }));
    await vi.waitFor(() => expect(lastAsked(server).get('sort')).toBe('name'));
  });

  it('are filtered by the server once typing pauses', async () => {
    const server = await open();
    await screen.findByRole('button', { name: 'aten::mm' });
    fireEvent.input(screen.getByRole('searchbox', { name: 'Filter operators' }), { target: { value: 'add ' } });
    await vi.waitFor(() => expect(lastAsked(server).get('filter')).toBe('add'));
    expect(server.asked.filter((each) => each.includes('filter=')).length).toBe(1);
  });

  it('are grouped as chosen, and the address knows', async () => {
    const server = await open();
    fireEvent.click(screen.getByRole('button', { name: 'Name and shapes' }));
    await vi.waitFor(() => expect(lastAsked(server).get('group')).toBe('shape'));
    expect(await screen.findByRole('columnheader', { name: 'Low–median–high' })).toBeTruthy();
    expect(window.location.hash).toContain('p.torchtidy.by=shape');
    fireEvent.click(screen.getByRole('button', { name: 'Source line' }));
    await vi.waitFor(() => expect(lastAsked(server).get('group')).toBe('line'));
    expect(lastAsked(server).get('kind')).toBeNull();
  });

  it('say why a grouping is missing', async () => {
    await open('&p.torchtidy.by=shape', [], 'No shapes; record with `record_shapes=True`.');
    expect(await screen.findByText(/No shapes; record with/)).toBeTruthy();
    expect(screen.queryByRole('table')).toBeNull();
  });

  it('say that there are none, or none that match', async () => {
    await open('', []);
    expect(await screen.findByText('It has no operators.')).toBeTruthy();
    fireEvent.input(screen.getByRole('searchbox', { name: 'Filter operators' }), { target: { value: 'x' } });
    expect(await screen.findByText('Nothing matches the filter.')).toBeTruthy();
  });

  it('say how many are not listed, and that the filter does not find those', async () => {
    const server = await open('', ROWS, null, 1234);
    expect(await screen.findByText('2 rows, 1,234 with less host time left out; times are totals over the recording')).toBeTruthy();
    server.answers['operators'] = () => ({ group: 'name', total: 0, offset: 0, rows: [], left_out: 1234, missing: null });
    fireEvent.input(screen.getByRole('searchbox', { name: 'Filter operators' }), { target: { value: 'x' } });
    expect(await screen.findByText('Nothing matches the filter among the rows with the most host time.')).toBeTruthy();
  });

  it('say what went wrong, and ask again', async () => {
    const server = await open();
    const fine = server.answers['operators'];
    server.answers['operators'] = () => { throw new Refusal(500, 'Out of memory.', 'Restart.'); };
    fireEvent.click(screen.getByRole('button', { name: 'Module' }));
    expect(await screen.findByText('Out of memory. Restart.')).toBeTruthy();
    if (fine) server.answers['operators'] = fine;
    fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('table', { name: 'Operators' })).toBeTruthy();
  });

  it('are asked for again on a reload', async () => {
    const server = await open();
    await screen.findByRole('button', { name: 'aten::mm' });
    const before = server.asked.filter((each) => each.startsWith('operators')).length;
    const { revalidate } = await import('../state/actions');
    await revalidate();
    await vi.waitFor(() => expect(server.asked.filter((each) => each.startsWith('operators')).length).toBe(before + 1));
  });
});

describe('the open row', () => {
  const panel = (name: string) => screen.findByRole('complementary', { name });

  it('has its kernels, and closes by its button and by Esc', async () => {
    await open();
    fireEvent.click(await screen.findByRole('button', { name: 'aten::add' }));
    const text = (await panel('aten::add')).textContent;
    for (const part of ['vectorized_add', 'elementwise', '3.00 ms']) expect(text).toContain(part);
    expect(window.location.hash).toContain('p.torchtidy.op=add');
    key('Escape', document.body);
    await vi.waitFor(() => expect(screen.queryByRole('complementary')).toBeNull());
  });

  it('leads to its findings and to its line', async () => {
    await open('&p.torchtidy.op=mm');
    const opened = within(await panel('aten::mm'));
    expect(opened.getByRole('button', { name: /train\.py:42/ })).toBeTruthy();
    fireEvent.click(opened.getByRole('button', { name: /Finding a/ }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Finding a' })).toBeTruthy();
  });

  it('covers the table on a narrow page', async () => {
    await open();
    const { narrow } = await import('../state/viewport');
    narrow.value = true;
    fireEvent.click(await screen.findByRole('button', { name: 'aten::mm' }));
    expect(await screen.findByRole('main', { name: 'aten::mm' })).toBeTruthy();
    expect(screen.queryByRole('table', { name: 'Operators' })).toBeNull();
  });
});
