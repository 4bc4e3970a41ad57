import { fireEvent, screen, within } from '@testing-library/preact';
import { describe, expect, it, vi } from 'vitest';
import type { BenchmarksAnswer, BenchmarkState, Finding, Measurement } from '../api/types.gen';
import { benchmarksAnswer, finding, job, measurement, report, saving, state } from '../testing/fixtures';
import { openPage, rows } from '../testing/page';
import { Refusal, serveProfile, type TestServer } from '../testing/server';

/** Streams that send each state when the test asks for it. A page may ask again: each request has a response of its own. */
function told(): { readonly response: Response; say: (state: BenchmarkState) => void; end: () => void } {
  const sent: Uint8Array[] = [];
  const following = new Set<ReadableStreamDefaultController<Uint8Array>>();
  let ended = false;
  const start = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    for (const each of sent) controller.enqueue(each);
    if (ended) controller.close();
    else following.add(controller);
  };
  return {
    get response() {
      let mine: ReadableStreamDefaultController<Uint8Array> | null = null;
      return new Response(new ReadableStream<Uint8Array>({
        start: (controller) => { mine = controller; start(controller); },
        cancel: () => { if (mine) following.delete(mine); },
      }));
    },
    say: (each) => {
      const line = new TextEncoder().encode(`${JSON.stringify(each)}\n`);
      sent.push(line);
      for (const controller of following) controller.enqueue(line);
    },
    end: () => {
      ended = true;
      for (const controller of following) controller.close();
      following.clear();
    },
  };
}

async function open(changes: Partial<BenchmarksAnswer> = {}, shown: Finding = finding('a'), more: (server: TestServer) => void = () => undefined): Promise<TestServer> {
  const server = serveProfile(report({ findings: [shown, finding('b', { saving: saving(1_000_000) })] }), state());
  server.answers['benchmarks'] = () => benchmarksAnswer(changes);
  more(server);
  await openPage();
  await rows();
  return server;
}

const card = async (): Promise<HTMLElement> => {
  const section = (await screen.findByRole('heading', { name: 'Micro-benchmark' })).closest('section');
  if (!section) throw new Error('The heading stands outside of a section.');
  return section;
};

const measured = (changes: Partial<Measurement> = {}): Partial<BenchmarksAnswer> => ({ measurements: { a: measurement(changes) } });
const taken = (changes: Partial<Measurement> = {}): Finding =>
  finding('a', { measurement: measurement(changes), saving: saving(4_000_000, { basis: ['replayed', 'measured'] }) });

describe('a finding without statements', () => {
  it('has no card', async () => {
    const server = await open({ findings: {} });
    await vi.waitFor(() => expect(server.asked).toContain('benchmarks?run=job&worker=host_1&span=1'));
    await screen.findByRole('heading', { name: 'Evidence' });
    expect(screen.queryByRole('heading', { name: 'Micro-benchmark' })).toBeNull();
  });
});

describe('a benchmark that was not run', () => {
  it('shows what would be run, and can be started', async () => {
    const asked: unknown[] = [];
    const server = await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = (_, posted) => {
        if (posted === null) return benchmarksAnswer({ jobs: asked.length > 0 ? [job({ state: 'queued', ahead: 2 })] : [] });
        asked.push(JSON.parse(posted));
        return job({ state: 'queued', ahead: 2 });
      };
      answers['benchmarks/progress'] = () => told().response;
    });
    const section = await card();
    expect(section.querySelector('.bench-state')?.textContent).toBe('Not run');
    expect(within(section).getByRole('region', { name: 'Statement before' }).textContent).toContain('result = x * 1');
    expect(within(section).getByRole('region', { name: 'Statement after' }).textContent).toContain('result = x');
    expect(within(section).getByRole('region', { name: 'Setup' }).textContent).toContain('import torch');
    fireEvent.click(within(section).getByRole('button', { name: 'Run benchmark' }));
    await vi.waitFor(() => expect(section.querySelector('.bench-state')?.textContent).toBe('Queued'));
    expect(section.textContent).toContain('Waiting for 2 benchmarks before it');
    expect(asked).toEqual([{ run: 'job', worker: 'host_1', span: '1', finding: 'a', budget_s: 2 }]);
    expect(server.asked.filter((path) => path.startsWith('benchmarks/progress'))).toEqual(['benchmarks/progress?job=1']);
    expect(window.location.hash).toContain('p.torchtidy.finding=a');
  });

  it('is measured on the device that is chosen, where there are several', async () => {
    const asked: unknown[] = [];
    const two = { a: { before: 'a', after: 'b', setup: '', of_events: true, devices: ['cuda:0', 'cuda:1', 'cpu'] } };
    await open({ findings: two }, finding('a'), ({ answers }) => {
      answers['benchmarks'] = (_, posted) => {
        if (posted === null) return benchmarksAnswer({ findings: two });
        asked.push(JSON.parse(posted));
        return job({ state: 'done' });
      };
    });
    const device = within(await card()).getByRole('combobox', { name: 'Device' });
    expect([...device.querySelectorAll('option')].map(({ textContent }) => textContent)).toEqual(['as recorded', 'cuda:0', 'cuda:1', 'cpu']);
    fireEvent.change(device, { target: { value: 'cuda:1' } });
    fireEvent.click(within(await card()).getByRole('button', { name: 'Run benchmark' }));
    await vi.waitFor(() => expect(asked).toEqual([{ run: 'job', worker: 'host_1', span: '1', finding: 'a', budget_s: 2, device: 'cuda:1' }]));
  });

  it('offers no choice where there is one device', async () => {
    await open();
    expect(within(await card()).queryByRole('combobox', { name: 'Device' })).toBeNull();
  });

  it('says why it could not be put in the queue', async () => {
    await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = (_, posted) => {
        if (posted !== null) throw new Refusal(403, '20 benchmarks wait already.', 'Wait, or cancel some.');
        return benchmarksAnswer();
      };
    });
    const section = await card();
    fireEvent.click(within(section).getByRole('button', { name: 'Run benchmark' }));
    expect(await within(section).findByRole('note')).toHaveProperty('textContent', '20 benchmarks wait already. Wait, or cancel some.');
  });
});

describe('a benchmark that runs', () => {
  it('is found again on a reload, tells how far it is, and is announced at its end', async () => {
    const stream = told();
    let answer = benchmarksAnswer({ jobs: [job({ state: 'measuring', stage: 'Measuring', fraction: 0.25 })] });
    await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = () => answer;
      answers['benchmarks/progress'] = () => stream.response;
    });
    const section = await card();
    const bar = within(section).getByRole('progressbar', { name: 'Benchmark' });
    expect(bar.getAttribute('aria-valuenow')).toBe('25');
    expect(section.textContent).toContain('Measuring…');
    stream.say(job({ state: 'measuring', stage: 'Measuring', fraction: 0.5 }));
    await vi.waitFor(() => expect(bar.getAttribute('aria-valuenow')).toBe('50'));
    const done = job({ state: 'done', fraction: 1, measurement: measurement() });
    answer = benchmarksAnswer({ ...measured(), jobs: [done] });
    stream.say(done);
    stream.end();
    await vi.waitFor(() => expect(document.querySelector('[aria-live]')?.textContent).toBe('Benchmark done. Faster with the fix: 1.8× (1.7–2.0)'));
    expect(section.querySelector('.bench-state')?.textContent).toBe('Measured');
  });

  it('can be cancelled, and its button keeps the focus', async () => {
    let answer = benchmarksAnswer({ jobs: [job({ state: 'measuring' })] });
    const cancelled = job({ state: 'cancelled', problem: { code: 422, message: 'The measurement was cancelled.', advice: 'Start it again.' } });
    const asked: unknown[] = [];
    await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = () => answer;
      answers['benchmarks/progress'] = () => told().response;
      answers['benchmarks/cancel'] = (_, posted) => {
        asked.push(JSON.parse(posted ?? ''));
        answer = benchmarksAnswer({ jobs: [cancelled] });
        return cancelled;
      };
    });
    const section = await card();
    const button = within(section).getByRole('button', { name: 'Cancel' });
    button.focus();
    fireEvent.click(button);
    await vi.waitFor(() => expect(section.querySelector('.bench-state')?.textContent).toBe('Cancelled'));
    expect(asked).toEqual([{ job: 1 }]);
    expect(document.activeElement).toBe(within(section).getByRole('button', { name: 'Run benchmark' }));
    expect(document.querySelector('[aria-live]')?.textContent).toBe('Benchmark cancelled');
  });

  it('makes the report be read again, and what is open stays open', async () => {
    const stream = told();
    const done = job({ state: 'done', measurement: measurement() });
    const server = await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = () => benchmarksAnswer({ jobs: [job({ state: 'measuring' })] });
      answers['benchmarks/progress'] = () => stream.response;
    });
    const section = await card();
    const less = finding('a', { measurement: measurement(), saving: saving(500_000, { basis: ['replayed', 'measured'] }) });
    const newer = serveProfile(report({ findings: [less, finding('b', { saving: saving(1_000_000) })] }), state({ version: 2 })).answers;
    Object.assign(server.answers, newer, { benchmarks: () => benchmarksAnswer({ ...measured(), jobs: [done] }) });
    vi.stubGlobal('fetch', server.fetch);
    stream.say(done);
    stream.end();
    await vi.waitFor(() => expect(section.textContent).toContain('Used in the saving'));
    const [first, second] = await rows();
    expect(first?.textContent).toContain('Finding b');
    expect(second?.textContent).toContain('✓ measured');
    expect(second?.getAttribute('aria-selected')).toBe('true');
    expect(screen.getByRole('main').textContent).toContain('computed from the timeline, measured');
    expect(screen.queryByText('A newer recording of this profile was found.')).toBeNull();
  });
});

describe('a benchmark that failed', () => {
  it.each([
    ['The measurement was killed, most likely because memory ran out.', 'Free memory.'],
    ['The measurement took more than 122 s.', 'Measure on a machine with less to do.'],
    ['The measurement ended with SIGSEGV.', 'Run `tb-tidy bench` on the command line to see what it says.'],
  ])('says so in the words of the server: %s', async (message, advice) => {
    await open({ jobs: [job({ state: 'failed', problem: { code: 422, message, advice } })] });
    const section = await card();
    expect(section.querySelector('.bench-state')?.textContent).toBe('Failed');
    expect(within(section).getByRole('note').textContent).toBe(`${message} ${advice.replaceAll('`', '')}`);
    expect(within(section).getByRole('button', { name: 'Measure again' })).toBeTruthy();
  });
});

describe('a measurement', () => {
  it('has its figures, its device, its versions and its time', async () => {
    await open(measured(), taken());
    const section = await card();
    expect(section.querySelector('.bench-state')?.textContent).toBe('Stored result');
    expect([...section.querySelectorAll('.worth-value')].map((value) => value.textContent)).toEqual(['1.8× (1.7–2.0)', '12.6 µs', '7 µs', 'n = 250']);
    expect(section.textContent).toContain('Faster with the fix, 95 % interval');
    expect(section.textContent).toContain('NVIDIA A100 · PyTorch 2.13.0 · CUDA 12.8 · 8 threads · 2 Jan 2026, 03:04 UTC');
    expect([...section.querySelectorAll('.bench-facts li')].map((fact) => fact.textContent)).toEqual(['Both leave the same result', 'Used in the saving']);
  });

  it('has a dot for each sample, and the same figures as a table', async () => {
    await open(measured(), taken());
    const section = await card();
    const plot = within(section).getByRole('img', { name: /Before: median 12.6 µs/ });
    expect([...plot.querySelectorAll('.dots')].map((dots) => dots.querySelectorAll('circle').length)).toEqual([3, 3]);
    expect(plot.querySelector('title')?.textContent).toBe('Time of a call, before and after');
    expect(plot.querySelector('desc')?.textContent).toBe('Before: median 12.6 µs, 12.4 µs to 13 µs. After: median 7 µs, 6.8 µs to 7.2 µs.');
    expect(section.textContent).toContain('3 of 250 samples, evenly chosen');
    fireEvent.click(within(section).getByRole('button', { name: 'Show as table' }));
    const cells = within(within(section).getByRole('table')).getAllByRole('row').slice(1).map((row) => row.textContent);
    expect(cells).toEqual(['112.4 µs7.00 µs', '212.6 µs6.80 µs', '313.0 µs7.20 µs']);
  });

  it('answers that there is no clear difference', async () => {
    await open(measured({ verdict: 'no_clear_difference', ratio: 0.99, low: 0.96, high: 1.02 }));
    const section = await card();
    expect(section.querySelector('.worth-value')?.textContent).toBe('No clear difference');
    expect(section.textContent).toContain('1.01× (0.98–1.04), 95 % interval');
  });

  it('says when the fix is slower', async () => {
    await open(measured({ verdict: 'slower', ratio: 1.25, low: 1.2, high: 1.3 }));
    expect((await card()).textContent).toContain('0.80× (0.77–0.83)Slower with the fix');
  });

  it('says when results differ, and is not used', async () => {
    await open(measured({ equal: false, trusted: false, doubts: ['`result` differs by 0.5.'] }), finding('a'));
    const section = await card();
    expect([...section.querySelectorAll('.bench-facts li')].map((fact) => fact.textContent)).toEqual([
      'They leave different results', 'Not used in the saving: it is not reliable enough', 'result differs by 0.5.',
    ]);
  });

  it('can be made again with more time where it is not reliable', async () => {
    const asked: { budget_s: number }[] = [];
    const unsure = measured({ trusted: false, doubts: ['Only 4 pairs of blocks fitted into the time: measure longer.'] });
    await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = (_, posted) => {
        if (posted !== null) asked.push(JSON.parse(posted));
        return posted === null ? benchmarksAnswer(unsure) : job({ state: 'done', measurement: measurement() });
      };
    });
    fireEvent.click(within(await card()).getByRole('button', { name: 'Measure longer' }));
    await vi.waitFor(() => expect(asked.map((each) => each.budget_s)).toEqual([10]));
  });

  it('of another kind of device stands apart and is not used', async () => {
    await open({ ...measured(), kind: 'cpu' }, finding('a', { measurement: measurement() }));
    const section = await card();
    expect(within(section).getByRole('heading', { name: 'On another kind of device (cuda)' })).toBeTruthy();
    expect(section.textContent).toContain('Not used in the saving: measured on cuda, recorded on cpu');
  });

  it('of the recording’s kind comes first where there are both', async () => {
    const here = job({ state: 'done', measurement: measurement({ on: { ...measurement().on, kind: 'cpu', name: 'A laptop' } }) });
    await open({ ...measured(), jobs: [here] }, taken());
    const names = [...(await card()).querySelectorAll('.bench-where')].map((where) => where.textContent?.split(' · ')[0]);
    expect(names).toEqual(['NVIDIA A100', 'A laptop']);
  });

  it('that could not be kept is shown before the one that was, with the reason', async () => {
    const problem = { code: 507, message: '`/cache/a.json` could not be written: No space left on device. The result is shown until TensorBoard ends, and is in no saving.', advice: 'Make room there.' };
    const fresh = job({ state: 'done', problem, measurement: measurement({ on: { ...measurement().on, name: 'A newer device' }, measured_at: '2026-02-02T00:00:00+00:00' }) });
    await open({ ...measured(), jobs: [fresh] }, taken());
    const section = await card();
    expect(section.querySelector('.bench-where')?.textContent).toContain('A newer device');
    expect(within(section).queryByRole('heading', { name: /another kind/ })).toBeNull();
    expect(section.querySelector('.bench-state')?.textContent).toBe('Measured');
    expect(section.textContent).toContain('Not used in the saving: it could not be kept');
    expect(within(section).getByRole('note').textContent).toBe('/cache/a.json could not be written: No space left on device. The result is shown until TensorBoard ends, and is in no saving. Make room there.');
  });
});

describe('where benchmarks cannot be run', () => {
  const off = { reason: 'off' as const, message: 'Benchmarks are off.', advice: 'Start TensorBoard with `--torchtidy_benchmarks=local` to run them here.' };

  it('there is the command for a shell, and how to switch them on', async () => {
    const copied: string[] = [];
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText: (text: string) => { copied.push(text); return Promise.resolve(); } } });
    await open({ refusal: off });
    const section = await card();
    expect(section.textContent).toContain('Benchmarks are off. Start TensorBoard with --torchtidy_benchmarks=local to run them here.');
    expect(within(section).queryByRole('button', { name: 'Run benchmark' })).toBeNull();
    fireEvent.click(within(section).getByRole('button', { name: 'Copy the command' }));
    await vi.waitFor(() => expect(copied).toEqual(["tb-tidy bench '/runs/my job/w.json' --finding a"]));
  });

  it('a stored result is there all the same', async () => {
    await open({ ...measured(), refusal: off }, taken());
    expect((await card()).textContent).toContain('Used in the saving');
  });

  it('PyTorch’s absence is told with the extra that brings it', async () => {
    await open({ refusal: { reason: 'no_torch', message: 'PyTorch is not installed here.', advice: "`pip install 'tb-tidy-plugin[bench]'`" } });
    expect((await card()).textContent).toContain("PyTorch is not installed here. pip install 'tb-tidy-plugin[bench]'");
  });

  it('where the server fails, it can be asked again', async () => {
    const server = await open({}, finding('a'), ({ answers }) => {
      answers['benchmarks'] = () => { throw new Refusal(500, 'Disk on fire.', 'Run.'); };
    });
    const section = await card();
    expect(section.textContent).toContain('Disk on fire. Run.');
    server.answers['benchmarks'] = () => benchmarksAnswer();
    fireEvent.click(within(section).getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('button', { name: 'Run benchmark' })).toBeTruthy();
  });
});
