import { cleanup, fireEvent, screen, within } from '@testing-library/preact';
import { afterEach, expect, it, vi } from 'vitest';
import type { Roofline } from '../api/types.gen';
import { finding, report, state } from '../testing/fixtures';
import { openPage } from '../testing/page';
import { serveProfile } from '../testing/server';

afterEach(cleanup);

const DOT = { detail: '', total_ns: 3_000_000, share: 0.75, roofline: 0.5, bound: 'compute' as const, findings: [] };
const KNOWN: Roofline = {
  device: 'H100', bytes_per_second: 3.35e12, ceilings: [{ name: 'float32', flops_per_second: 67e12 }], missing: null,
  dots: [
    { ...DOT, kind: 'operator', key: 'mm 1', name: 'aten::mm', detail: '8×8', flops_per_second: 30e12, bytes_per_second: 3e11, findings: ['a'] },
    { ...DOT, kind: 'kernel', key: 'k', name: 'gemm', flops_per_second: 30e12, bytes_per_second: 3e11, roofline: null, bound: null },
  ],
};

async function open(answer: Roofline): Promise<void> {
  const server = serveProfile(report({ findings: [finding('a', { message: 'Slow product' })] }), state());
  server.answers['roofline'] = () => answer;
  await openPage('torchtidy&p.torchtidy.view=roofline');
  await screen.findByRole('heading', { level: 1, name: 'Roofline' });
}

const cells = async (name: string): Promise<(string | null)[][]> =>
  within(await screen.findByRole('region', { name })).getAllByRole('row').map((row) => [...row.children].map((cell) => cell.textContent));

it('has each dot in its table, with its limit, and without columns that are empty', async () => {
  await open(KNOWN);
  expect(await cells('Roofline of operators')).toEqual([
    ['Operator', 'Input shapes', 'Device time', 'Of the device', 'FLOP/s', 'FLOP per byte', 'Of its limit', 'Bound by'],
    ['aten::mm', '8×8', '3.00 ms', '75.0 %', '30.0 TFLOP/s', '100', '50.0 %', 'computing'],
  ]);
  fireEvent.click(screen.getByRole('button', { name: 'Kernels' }));
  expect((await cells('Roofline of kernels'))[0]).toEqual(['Kernel', 'Device time', 'Of the device', 'FLOP/s', 'FLOP per byte']);
});

it('leads from a dot to its finding and its operator', async () => {
  await open(KNOWN);
  fireEvent.click(await screen.findByRole('button', { name: 'aten::mm' }));
  expect(screen.getByRole('button', { name: 'Slow product' })).toBeTruthy();
  fireEvent.click(screen.getByRole('button', { name: 'Operator and line' }));
  await vi.waitFor(() => expect(decodeURIComponent(window.location.hash)).toContain('op=mm 1'));
  expect(window.location.hash).toContain('by=shape');
});

it('says how to give the rates of a device that is not known', async () => {
  await open({ ...KNOWN, device: 'RTX 1', bytes_per_second: null, ceilings: [] });
  expect((await screen.findByText(/^\[devices\."RTX 1"\]/)).textContent).toContain('gigabytes-per-second');
});

it('is missing with a reason', async () => {
  await open({ ...KNOWN, dots: [], missing: 'Record the device.' });
  expect(await screen.findByText('Record the device.')).toBeTruthy();
});
