import { cleanup, fireEvent, screen, within } from '@testing-library/preact';
import { afterEach, expect, it, vi } from 'vitest';
import { finding, flame, ledger, ledgerEntry, report, state } from '../testing/fixtures';
import { effects, key, openPage } from '../testing/page';
import { serveProfile } from '../testing/server';

afterEach(cleanup);

function serveFlame(): void {
  vi.stubGlobal('ResizeObserver', class { observe() {} unobserve() {} disconnect() {} });
  const entries = [ledgerEntry('compute', 'matrix', [30, 30]), ledgerEntry('launch_pace', null, [20, 20])];
  const server = serveProfile(report({ findings: [finding('a')], ledger: ledger(entries) }), state());
  server.answers['flame'] = () => flame({ findings: { a: [2] } });
}

const canvas = (name: RegExp = /^Flame graph of/): Promise<HTMLElement> => screen.findByRole('application', { name });
const parts = async (name: string): Promise<(string | null)[][]> => {
  const table = await screen.findByRole('region', { name: `Parts of ${name}` });
  return within(table).getAllByRole('row').slice(1).map((row) => [...row.children].map((cell) => cell.textContent));
};

it('says in words and as a table what it shows', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.view=flame');
  expect((await canvas()).getAttribute('aria-label')).toBe('Flame graph of step time. All: 50 ns per step, 100 % of all; 2 parts inside.');
  expect(await parts('All')).toEqual([['step', 'function', '45 ns', '90.0 %'], ['The host is late', 'idle time', '5 ns', '10.0 %']]);
});

it('zooms by its table, and goes out by the path and the keys', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.view=flame');
  fireEvent.click(await screen.findByRole('button', { name: 'step' }));
  expect(await parts('step')).toEqual([['aten::mm', 'operator', '30 ns', '60.0 %'], ['The host is late', 'idle time', '15 ns', '30.0 %']]);
  expect(window.location.hash).toContain('node=1');
  const graph = await canvas();
  await effects();
  key('ArrowDown', graph);
  await effects();
  expect(screen.getByRole('button', { name: 'Operator' })).toBeTruthy();
  key('Enter', graph);
  expect((await parts('aten::mm')).map(([name]) => name)).toEqual(['gemm_mm']);
  await effects();
  key('Home', graph);
  expect(await parts('All')).toHaveLength(2);
});

it('weighs by what is chosen, of what there is', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.view=flame');
  const choice = await screen.findByRole('group', { name: 'Weight' });
  expect(within(choice).getAllByRole('button').map((each) => each.textContent)).toEqual(['Step time', 'Device time', 'Idle time', 'Host time']);
  fireEvent.click(within(choice).getByRole('button', { name: 'Host time' }));
  expect(await parts('All')).toEqual([['step', 'function', '25 ns', '100 %']]);
});

it('counts what a search finds', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.view=flame');
  fireEvent.input(await screen.findByRole('searchbox', { name: 'Search the flame graph' }), { target: { value: 'mm' } });
  expect((await screen.findByText(/^2 matches/)).textContent).toBe('2 matches, 60 % of all');
});

it('is one click from a finding, zoomed to its events', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.finding=a');
  fireEvent.click(await screen.findByRole('button', { name: 'Show in the flame graph' }));
  expect((await canvas(/aten::mm/)).getAttribute('aria-label')).toContain('aten::mm: 30 ns per step');
  fireEvent.click(screen.getByRole('button', { name: 'Show all in colour' }));
  expect((await parts('aten::mm')).map(([name]) => name)).toEqual(['gemm_mm']);
});

it('shows the time of one entry alone', async () => {
  serveFlame();
  await openPage('torchtidy&p.torchtidy.view=flame&p.torchtidy.entry=launch_pace');
  expect(await parts('All')).toEqual([['step', 'function', '15 ns', '75.0 %'], ['The host is late', 'idle time', '5 ns', '25.0 %']]);
  fireEvent.click(screen.getByRole('button', { name: 'Show all' }));
  expect((await parts('All')).map(([, , ns]) => ns)).toEqual(['45 ns', '5 ns']);
});
