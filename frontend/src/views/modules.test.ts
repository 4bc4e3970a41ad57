import { fireEvent, screen, within } from '@testing-library/preact';
import { beforeEach, expect, it, vi } from 'vitest';
import type { ModuleRow } from '../api/types.gen';
import { report, state } from '../testing/fixtures';
import { key, openPage } from '../testing/page';
import { Refusal, serveProfile, type TestServer } from '../testing/server';

beforeEach(() => { // tests have no layout: a pane of this height has visible rows
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(900);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
});

const row = (name: string, parent: number | null, last: number, depth: number, changes: Partial<ModuleRow> = {}): ModuleRow => ({
  name, class_name: name.split('_')[0] ?? '', parent, last, depth, calls: 3, places: 1, file: 'nn.py', line: 1, forward_ns: 4e6, forward_self_ns: 1e6,
  backward_ns: 6e6, backward_self_ns: 2e6, device_forward_ns: null, device_backward_ns: null, allocated_bytes: null, ...changes,
});
/** Net(Block(Linear)) and Loss; the Linear is below the initially open levels. */
const ROWS = [row('Net_0', null, 3, 0), row('Block_0', 0, 3, 1), row('Layer_0', 1, 3, 2), row('Linear_0', 2, 3, 3), row('Loss_0', null, 4, 0)];

async function open(rows = ROWS, missing: string | null = null): Promise<TestServer> {
  const server = serveProfile(report(), state());
  server.answers['modules'] = () => ({ rows, missing });
  await openPage('torchtidy&p.torchtidy.view=modules');
  return server;
}

const tree = () => screen.findByRole('treegrid', { name: 'Modules' });
const names = async () => (await within(await tree()).findAllByRole('rowheader')).map((cell) => cell.textContent.replaceAll(/[▾▸ ]/g, ''));

it('shows the first levels, and opens and closes by arrows', async () => {
  await open();
  const grid = await tree();
  await vi.waitFor(async () => expect(await names()).toEqual(['Net_0', 'Block_0', 'Layer_0', 'Loss_0']));
  for (const name of ['ArrowDown', 'ArrowDown', 'ArrowRight']) {
    key(name, grid);
    await Promise.resolve();
    await new Promise((done) => { setTimeout(done, 20); });
  }
  expect(await names()).toEqual(['Net_0', 'Block_0', 'Layer_0', 'Linear_0', 'Loss_0']);
  expect(grid.getAttribute('aria-activedescendant')).toBe('tree-2');
  key('Home', grid);
  await new Promise((done) => { setTimeout(done, 20); });
  key('ArrowLeft', grid);
  await vi.waitFor(async () => expect(await names()).toEqual(['Net_0', 'Loss_0']));
  const [first] = within(grid).getAllByRole('row').slice(1);
  expect([first?.getAttribute('aria-expanded'), first?.getAttribute('aria-level')]).toEqual(['false', '1']);
});

it('opens by its sign', async () => {
  await open();
  const sign = (await tree()).querySelectorAll('.tree-sign')[0];
  if (sign) fireEvent.click(sign);
  await vi.waitFor(async () => expect(await names()).toEqual(['Net_0', 'Loss_0']));
});

it('has times with units, and columns for device, memory and replays only where there are figures', async () => {
  await open();
  const headings = async () => within(await tree()).getAllByRole('columnheader').map((cell) => cell.textContent);
  expect(await headings()).toEqual(['Module', 'Calls', 'Host', 'Host forward', 'Forward self', 'Host backward', 'Backward self']);
  await open([row('Net_0', null, 0, 0, { device_forward_ns: 5e6, device_backward_ns: 7e6, allocated_bytes: 2048, known_by: 'donor' })]);
  expect((await headings()).slice(-5)).toEqual(['Device', 'Device forward', 'Device backward', 'Allocated', 'From capture']);
  expect((await within(await tree()).findAllByRole('gridcell')).map((cell) => cell.textContent)).toEqual([
    '3', '10.0 ms', '4.00 ms', '1.00 ms', '6.00 ms', '2.00 ms', '12.0 ms', '5.00 ms', '7.00 ms', '2.00 KiB', 'by an eager iteration',
  ]);
});

it('begins with the parts of an average step, by pass', async () => {
  const heads = async () => within(await tree()).getAllByRole('columnheader').map((cell) => cell.textContent);
  await open([row('Net_0', null, 1, 0, { step_ns: 60e6, step_forward_ns: 15e6, step_backward_ns: 30e6 }), row('Linear_0', 0, 1, 1, { step_forward_ns: 0 })]);
  expect((await heads()).slice(0, 5)).toEqual(['Module', 'Per step', 'Forward', 'Backward', 'Calls']);
  const cells = (await within(await tree()).findAllByRole('gridcell')).map((cell) => cell.textContent);
  expect(cells.slice(0, 4)).toEqual(['20.0 ms', '5.00 ms', '10.0 ms', '3']);
  expect(cells.slice(9, 13)).toEqual(['', '', '', '3']);
  await screen.findByText(/which module an update is of was not recorded/);
  await open([row('Net_0', null, 0, 0, { step_ns: 60e6, step_forward_ns: 15e6, step_optimizer_ns: 3e6 })]);
  expect((await heads()).slice(0, 5)).toEqual(['Module', 'Per step', 'Forward', 'Optimizer', 'Calls']);
  expect((await within(await tree()).findAllByRole('gridcell')).map((cell) => cell.textContent).slice(0, 3)).toEqual(['20.0 ms', '5.00 ms', '1.00 ms']);
  expect(screen.queryByText(/which module an update is of/)).toBeNull();
});

it('has no columns of a backward pass where there was none', async () => {
  await open([row('Net_0', null, 0, 0, { backward_ns: 0, backward_self_ns: 0, device_forward_ns: 5e6, device_backward_ns: 0 })]);
  expect(within(await tree()).getAllByRole('columnheader').map((cell) => cell.textContent)).toEqual(['Module', 'Calls', 'Host', 'Forward self', 'Device']);
});

it('says why there are none', async () => {
  await open([], 'No stacks; record with `with_stack=True`.');
  await screen.findByRole('heading', { name: 'Not in this recording' });
  expect(screen.getByRole('main').textContent).toContain('No stacks; record with with_stack=True.');
});

it('says what went wrong, and asks again', async () => {
  const server = await open();
  await tree();
  server.answers['modules'] = () => { throw new Refusal(500, 'Broken.', 'Wait.'); };
  await openPage('torchtidy&p.torchtidy.view=modules');
  expect(await screen.findByText('Broken. Wait.')).toBeTruthy();
  server.answers['modules'] = () => ({ rows: ROWS, missing: null });
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  expect(await tree()).toBeTruthy();
});
