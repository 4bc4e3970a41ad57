import { fireEvent, screen, within } from '@testing-library/preact';
import { describe, expect, it, vi } from 'vitest';
import type { ProfileReport } from '../api/types.gen';
import { finding, noAccount, outlier, report, saving, state } from '../testing/fixtures';
import { key, openPage } from '../testing/page';
import { serveProfile } from '../testing/server';

const steps = {
  ...report().steps,
  items: [90, 100, 110].map((ms, index) => ({
    name: `ProfilerStep#${index + 4}`, start_ns: index * 1e8, duration_ns: ms * 1e6, oddity: index === 2 ? 'outlier' as const : null,
  })),
};

async function open(changes: Partial<ProfileReport> = {}, hash = ''): Promise<HTMLElement> {
  serveProfile(report({ steps, ...changes }), state());
  await openPage(`torchtidy&p.torchtidy.view=overview${hash}`);
  await screen.findByRole('heading', { level: 1, name: 'Overview' });
  return screen.getByRole('main');
}

const chart = (name: string) => within(screen.getByRole('region', { name }));

describe('the overview', () => {
  it('opens by its tab, and the address knows', async () => {
    serveProfile(report({ steps }), state());
    await openPage();
    fireEvent.click(await screen.findByRole('tab', { name: 'Overview' }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Overview' })).toBeTruthy();
    expect(window.location.hash).toContain('p.torchtidy.view=overview');
  });

  it('says how long a step takes, where steps come from, and which are odd', async () => {
    const text = (await open()).textContent;
    expect(text).toContain('A step takes 100 ms (median of 3 steps, min–max 90 ms to 110 ms); steps are marked by the profiler.');
    expect(text).toContain('▲ 1 outlier: ProfilerStep#6');
  });

  it('sets the recorded step beside the one without the profiler, of which savings are', async () => {
    const joint = saving(10_000_000, { low_ns: 5_000_000, high_ns: 12_000_000 });
    const text = (await open({ true_step_ns: 60_000_000, step_ns: 60_000_000, joint_saving: joint, findings: [finding('a', { saving: saving(8_000_000) }), finding('b', { saving: saving(6_000_000) })] })).textContent;
    expect(text).toContain('Recorded 100 ms, without the profiler 60 ms: savings are of the latter.');
    expect(text).toContain('With all findings fixed a step would take 50 ms (48–55).');
    expect(text).toContain('Some findings share time, so this is less than their sum.');
  });

  it('has the settings of the job, with a remark on what is worth a look', async () => {
    await open({ settings: { numerics: { anomaly_mode: true }, threads: { intra_op: 4, available_cores: 8 } } });
    const cells = within(screen.getByRole('region', { name: 'Settings of the job' })).getAllByRole('row').slice(1).map((row) => row.textContent);
    expect(cells).toEqual(['Threads in an operator4 on 8 cores', 'Anomaly modeon▲ for debugging: every operator gets slower']);
  });

  it('shows the parts of a step that is chosen, by mouse and by arrows, and the average again', async () => {
    await open();
    fireEvent.click(screen.getByRole('option', { name: 'ProfilerStep#4: 90 ms' }));
    expect(await screen.findByRole('table', { name: 'Entries of ProfilerStep#4' })).toBeTruthy();
    expect(window.location.hash).toContain('p.torchtidy.step=ProfilerStep');
    key('ArrowRight', screen.getByRole('listbox', { name: 'Steps' }));
    expect(await screen.findByRole('table', { name: 'Entries of ProfilerStep#5' })).toBeTruthy();
    key('End', screen.getByRole('listbox', { name: 'Steps' }));
    await vi.waitFor(() => expect(within(screen.getByRole('listbox', { name: 'Steps' })).getByRole('option', { selected: true }).textContent).toContain('ProfilerStep#6: 110 ms, outlier'));
    fireEvent.click(screen.getByRole('button', { name: 'Show the average step' }));
    expect(await screen.findByRole('table', { name: 'Entries of the average step' })).toBeTruthy();
  });

  it('says why a step is an outlier, once it is chosen by its name or its column', async () => {
    await open({ outliers: [outlier()] });
    expect(screen.queryByRole('region', { name: /Why/ })).toBeNull();
    fireEvent.click(screen.getByRole('button', { name: 'ProfilerStep#6' }));
    const why = await screen.findByRole('region', { name: 'Why ProfilerStep#6 is an outlier' });
    expect(why.textContent).toContain('waiting for data 8 ms more; aten::mm 2 ms more (3 calls instead of 2).');
    expect(within(why).getAllByRole('row').slice(1).map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ['Waiting for data', 'Wait', '9.00 ms', '1.00 ms', '+8.00 ms', '–'],
      ['The step waits for data', 'Part of the step', '9.00 ms', '1.00 ms', '+8.00 ms', '–'],
      ['aten::mm 64×64', 'Operator, self time', '6.00 ms', '4.00 ms', '+2.00 ms', '2 → 3'],
    ]);
    fireEvent.click(screen.getByRole('option', { name: /ProfilerStep#5/ }));
    await vi.waitFor(() => expect(screen.queryByRole('region', { name: /Why/ })).toBeNull());
  });

  it('leads from a step to its comparison with the median step, which is that of the usual ones', async () => {
    await open();
    fireEvent.click(screen.getByRole('option', { name: /ProfilerStep#6: 110 ms/ }));
    fireEvent.click(await screen.findByRole('button', { name: 'Compare with the median step' }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Compare' })).toBeTruthy();
    const address = new URLSearchParams(window.location.hash.slice(1));
    const named = ['cmp', 'cmp_rank', 'cmp_span', 'steps', 'with', 'with_rank', 'with_span', 'with_steps'].map((name) => address.get(`p.torchtidy.${name}`));
    expect(named).toEqual(['job', 'host_1', '1', '4', 'job', 'host_1', '1', '6']);
  });

  it('has every chart as a table', async () => {
    await open();
    for (const button of screen.getAllByRole('button', { name: 'Show as table' })) fireEvent.click(button);
    await vi.waitFor(() => expect(chart('Steps').getAllByRole('row').map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ['Step', 'Start', 'Duration', 'Odd', 'Device compute', 'Copies', 'Data loading', 'Not explained'],
      ['ProfilerStep#4', '0.000 ms', '90.0 ms', '', '45.0 ms', '5.00 ms', '30.0 ms', '10.0 ms'],
      ['ProfilerStep#5', '90.000 ms', '100 ms', '', '50.0 ms', '10.0 ms', '30.0 ms', '10.0 ms'],
      ['ProfilerStep#6', '190.000 ms', '110 ms', '▲ outlier', '55.0 ms', '15.0 ms', '30.0 ms', '10.0 ms'],
    ]));
  });

  it('opens one of the three findings that are worth most', async () => {
    const findings = [1, 5, 3, 4].map((ms) => finding(`f${ms}`, { saving: saving(ms * 1e6) }));
    await open({ findings });
    const list = within(screen.getByRole('region', { name: 'Findings worth most' }));
    expect(list.getAllByRole('listitem').map((item) => item.textContent)).toEqual([
      'Severity: mediumFinding f5saves 5 ms per step', 'Severity: mediumFinding f4saves 4 ms per step', 'Severity: mediumFinding f3saves 3 ms per step',
    ]);
    fireEvent.click(list.getByRole('button', { name: /Finding f4/ }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Finding f4' })).toBeTruthy();
  });

  it('has no strip and no step time where there is nothing to account for', async () => {
    const text = (await open({ steps: { basis: 'none', count: 0, median_ns: null, items: [] }, ledger: noAccount() })).textContent;
    expect(text).toContain('The recording is 300 ms long. It contains no steps, so the step time is unknown.');
    expect(screen.queryByRole('listbox')).toBeNull();
  });

  it('tells what was recorded, and notes on quality', async () => {
    const text = (await open({
      quality: { partial: false, dropped_events: 2, parent_mismatch: null, notes: ['Clocks were `41 µs` apart.'] },
    })).textContent;
    for (const part of ['no memory: record with profile_memory=True', 'Clocks were 41 µs apart.', '2 events could not be used'])
      expect(text).toContain(part);
  });
});

describe('serving on the overview', () => {
  it('has a row for each phase, and says how the operators of graphs are known', async () => {
    const phase = {
      phase: 'decode' as const, mode: 'graph' as const, size: null, count: 1, requests: 32, kv_tokens: 32785, device_ns: 10_450_292, busy_share: 0.935,
      host_late_ns: 383_897, queued_ns: 273_690, lead_ns: 12_814, tokens_per_second: 3062.1, time_per_output_token_ns: 10_450_292,
      tokens: 32, padded: 48, graph_launches: 2, floor: { weight_bytes: 3 << 20, kv_bytes: 1 << 20, ns: 3_771_588 },
    };
    const graphs = { launches: 1, kernels: 544, time_ns: 1000, attribution: [{ known_by: 'exact' as const, kernels: 540, time_ns: 750 }, { known_by: null, kernels: 4, time_ns: 250 }], sources: ['a'] };
    await open({ serving: { count: 1, iterations: [], phases: [phase], repetition: null, graphs } });
    const serving = chart('Serving');
    expect(serving.getAllByRole('cell').map(({ textContent }) => textContent)).toEqual(['1', '32 of 48', '32', '32,785', '10.5 ms', '3.77 ms', '93.5 %', '384 µs', '3,062', '10.5 ms']);
    expect(serving.getByRole('rowheader').textContent).toBe('decode graph × 2');
    expect(serving.getByText('A decode reads 3 MiB of weights and 1 MiB of KV cache: at least 3.77 ms.')).toBeTruthy();
    expect(serving.getByText('1 graph launch, 544 kernels, 1 µs. 75 % of their time has an operator (exact 75 %).')).toBeTruthy();
  });

  it('is not there without a server or a graph', async () => {
    await open();
    expect(screen.queryByRole('region', { name: /Serving|Graphs/ })).toBeNull();
  });
});
