import { fireEvent, screen, within } from '@testing-library/preact';
import { describe, expect, it, vi } from 'vitest';
import type { ProfileState } from '../api/types.gen';
import { finding, report, saving, state } from '../testing/fixtures';
import { openPage, rows } from '../testing/page';
import { Refusal, serve, serveProfile } from '../testing/server';

const problem = { path: '/runs/x.json', error: 'Broken at byte 7.', advice: 'Record again.', recovered_events: 0 };

describe('before there is a report', () => {
  it('shows how to record where there are no traces', async () => {
    serve({ runs: () => ({ logdirs: ['/my/runs'], scanning: false, runs: [] }), rules: () => ({ rules: [] }) });
    const body = await openPage();
    expect(await screen.findByRole('heading', { name: 'No traces yet' })).toBeTruthy();
    expect(body.textContent).toContain('tensorboard_trace_handler');
    expect(body.textContent).toContain('/my/runs');
  });

  it('waits while the logdir is being looked through, and asks again', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    const server = serve({ runs: () => ({ logdirs: ['/r'], scanning: true, runs: [] }), rules: () => ({ rules: [] }) });
    await openPage();
    expect(await screen.findByRole('heading', { name: 'Looking for traces' })).toBeTruthy();
    server.answers['runs'] = () => ({ logdirs: ['/r'], scanning: false, runs: [] });
    await vi.advanceTimersByTimeAsync(1500);
    expect(await screen.findByRole('heading', { name: 'No traces yet' })).toBeTruthy();
    vi.useRealTimers();
  });

  it('streams the progress, then shows the report', async () => {
    const states: ProfileState[] = [
      state({ state: 'reading', fraction: 0.4, stage: 'Reading 14 of 35 MB' }), state({ state: 'analysing', fraction: 0.9 }), state(),
    ];
    let done = false;
    const pieces: ReadableStreamDefaultController<Uint8Array>[] = [];
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    const finished = server.answers['report'];
    server.answers['report'] = (query) => (done ? finished?.(query, null) : { states: [state({ state: 'queued' })], report: { run: 'job', profiles: [] } });
    server.answers['progress'] = () => new Response(new ReadableStream<Uint8Array>({ start: (controller) => void pieces.push(controller) }));
    const body = await openPage();
    const send = (each: ProfileState | undefined) => pieces.at(-1)?.enqueue(new TextEncoder().encode(`${JSON.stringify(each)}\n`));
    await vi.waitFor(() => expect(pieces.length).toBeGreaterThan(0)); // a page may ask again: the last request counts
    send(states[0]);
    await vi.waitFor(() => expect(body.textContent).toContain('Reading 14 of 35 MB40 %'));
    send(states[1]);
    expect(await screen.findByRole('heading', { name: 'Looking for patterns' })).toBeTruthy();
    done = true;
    send(states[2]);
    pieces.at(-1)?.close();
    expect((await rows()).length).toBe(1);
  });

  it('says what is wrong with a file, and what to do', async () => {
    serveProfile(report(), state({ state: 'error', problem }));
    const body = await openPage();
    expect(await screen.findByRole('heading', { name: 'This trace could not be read' })).toBeTruthy();
    for (const text of ['Broken at byte 7.', 'Record again.', '/runs/x.json']) expect(body.textContent).toContain(text);
  });

  it('has it analysed again on Try again, and shows the report', async () => {
    const failed = state({ state: 'error', problem });
    const server = serveProfile(report(), failed);
    const after = serveProfile(report({ findings: [finding('a')] }), state({ version: 2 })).answers;
    const { report: finished } = after;
    vi.stubGlobal('fetch', server.fetch);
    server.answers['retry'] = (_, posted) => {
      expect(JSON.parse(posted ?? '')).toEqual({ run: 'job', worker: 'host_1', span: '1' });
      server.answers['report'] = () => ({ states: [state({ state: 'queued', version: 2 })], report: { run: 'job', profiles: [] }, ranks: [], pending: 1 });
      return state({ state: 'queued', version: 2 });
    };
    server.answers['progress'] = () => {
      server.answers['report'] = finished ?? (() => null);
      return new Response(`${JSON.stringify(state({ version: 2 }))}\n`);
    };
    await openPage();
    fireEvent.click(await screen.findByRole('button', { name: 'Try again' }));
    expect((await rows()).length).toBe(1);
    expect(server.asked.filter((path) => path === 'retry').length).toBe(1);
  });

  it('says why it cannot be analysed again, and goes on saying what is wrong', async () => {
    const server = serveProfile(report(), state({ state: 'error', problem }));
    server.answers['retry'] = () => { throw new Refusal(403, 'Not by this name.', 'Use another.'); };
    const body = await openPage();
    fireEvent.click(await screen.findByRole('button', { name: 'Try again' }));
    await vi.waitFor(() => expect(body.textContent).toContain('Not by this name. Use another.'));
    expect(body.textContent).toContain('Broken at byte 7.');
  });

  it('says what the server says', async () => {
    serve({ runs: () => { throw new Refusal(500, 'Permission denied.', 'Ask for it.'); } });
    const body = await openPage();
    expect(await screen.findByRole('heading', { name: 'The server could not answer' })).toBeTruthy();
    expect(body.textContent).toContain('Ask for it.');
  });
});

describe('questions', () => {
  const of = (server: { asked: string[] }, name: string): number => server.asked.filter((path) => path.startsWith(`${name}?`)).length;

  it('are asked once when the page opens', async () => {
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    await openPage();
    await rows();
    expect([of(server, 'report'), of(server, 'progress')]).toEqual([1, 0]);
    expect(server.asked.filter((path, at) => server.asked.indexOf(path) !== at)).toEqual([]);
  });

  it('are asked before and after the analysis, which is followed once', async () => {
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    const finished = server.answers['report'];
    server.answers['report'] = () => ({ states: [state({ state: 'queued' })], report: { run: 'job', profiles: [] } });
    server.answers['progress'] = () => {
      server.answers['report'] = finished ?? (() => null);
      return new Response(`${JSON.stringify(state())}\n`);
    };
    await openPage();
    await rows();
    expect([of(server, 'report'), of(server, 'progress')]).toEqual([2, 1]);
  });

  it('are not asked again by a reload while the first is on its way', async () => {
    let answer = (): void => undefined;
    const answered = new Promise<void>((done) => { answer = done; });
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    const { fetch } = server;
    vi.stubGlobal('fetch', async (...asked: Parameters<typeof fetch>) => {
      const said = await fetch(...asked);
      if (String(asked[0]).startsWith('api/report')) await answered;
      return said;
    });
    await openPage();
    await vi.waitFor(() => expect(of(server, 'report')).toBe(1));
    const { revalidate } = await import('../state/actions');
    await revalidate();
    answer();
    await rows();
    expect(of(server, 'report')).toBe(1);
  });
});

describe('bars above the report', () => {
  it('tell what could not be read', async () => {
    serveProfile(report({ findings: [finding('a')] }), state({ problem: { ...problem, recovered_events: 48102 } }));
    const body = await openPage();
    await rows();
    expect(body.textContent).toContain('This report covers the 48,102 events that could be read.');
  });

  it('tell that the newer recording failed, and have it analysed again', async () => {
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    await openPage();
    await rows();
    const { revalidate } = await import('../state/actions');
    server.answers['runs'] = serveProfile(report(), state({ state: 'error', problem, version: 2, recording: 2 })).answers['runs'] ?? (() => null);
    vi.stubGlobal('fetch', server.fetch);
    await revalidate();
    let asked = false;
    server.answers['retry'] = () => {
      asked = true;
      return state({ version: 3, recording: 2 });
    };
    const notice = (await screen.findByText('Broken at byte 7.')).closest<HTMLElement>('[role=status]') ?? document.body;
    fireEvent.click(within(notice).getByRole('button', { name: 'Try again' }));
    await vi.waitFor(() => expect(asked).toBe(true));
    await vi.waitFor(() => expect(screen.queryByText('Broken at byte 7.')).toBeNull());
  });

  it('tell that more is coming while the findings are on the screen already', async () => {
    const early = state({ state: 'analysing', stage: 'Adding up operators', fraction: 0.8, reported: true });
    const found = report({ findings: [finding('a', { message: 'Early' })] });
    const server = serveProfile(found, early);
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => { finish = resolve; });
    const line = (each: unknown): Uint8Array => new TextEncoder().encode(`${JSON.stringify(each)}\n`);
    server.answers['report'] = () => ({ states: [early], report: { run: 'job', profiles: [found] }, ranks: [0], pending: 1 });
    server.answers['progress'] = () => new Response(new ReadableStream({
      async start(stream) {
        stream.enqueue(line(early));
        await finished;
        stream.enqueue(line(state({ reported: true })));
        stream.close();
      },
    }));
    const body = await openPage();
    expect((await rows())[0]?.textContent).toContain('Early');
    expect(body.textContent).toContain('The findings are there; tables and evidence follow. Adding up operators');
    server.answers['report'] = () => ({ states: [state({ reported: true })], report: { run: 'job', profiles: [found] }, ranks: [0], pending: 0 });
    finish();
    await vi.waitFor(() => expect(body.textContent).not.toContain('Adding up operators'));
    expect((await rows())[0]?.textContent).toContain('Early');
  });

  it('tell of a newer recording, without touching what is on the screen until asked', async () => {
    const server = serveProfile(report({ findings: [finding('a', { message: 'Old' })] }), state({ version: 1 }));
    await openPage();
    await rows();
    const { revalidate } = await import('../state/actions');
    const newer = serveProfile(report({ findings: [finding('a', { message: 'New' })] }), state({ version: 2, recording: 2 })).answers;
    Object.assign(server.answers, newer);
    await revalidate();
    expect(await screen.findByText('A newer recording of this profile was found.')).toBeTruthy();
    expect((await rows())[0]?.textContent).toContain('Old');
    fireEvent.click(screen.getByRole('button', { name: 'Load' }));
    await vi.waitFor(async () => expect((await rows())[0]?.textContent).toContain('New'));
    expect(screen.queryByText('A newer recording of this profile was found.')).toBeNull();
  });

  it('tell when the server is gone, keep the data, and try again', async () => {
    const server = serveProfile(report({ findings: [finding('a')] }), state());
    await openPage();
    await rows();
    const { revalidate } = await import('../state/actions');
    server.down = true;
    await revalidate();
    expect(await screen.findByText('The server does not answer.')).toBeTruthy();
    expect((await rows()).length).toBe(1);
    server.down = false;
    fireEvent.click(screen.getByRole('button', { name: 'Retry' }));
    await vi.waitFor(() => expect(screen.queryByText('The server does not answer.')).toBeNull());
  });
});

it('tells when the server goes while it streams the progress', async () => {
  const server = serveProfile(report(), state({ state: 'reading' }));
  server.answers['progress'] = () => {
    server.down = true;
    return new Response(new ReadableStream({ start: (controller) => controller.error(new TypeError('network error')) }));
  };
  await openPage();
  expect(await screen.findByText('The server does not answer.')).toBeTruthy();
});

describe('the address', () => {
  it('opens the finding that it names', async () => {
    serveProfile(report({ findings: [finding('a'), finding('b')] }), state());
    await openPage('torchtidy&p.torchtidy.finding=b');
    expect(await screen.findByRole('heading', { level: 1, name: 'Finding b' })).toBeTruthy();
  });

  it('gets the finding that is clicked, and restores on Back', async () => {
    serveProfile(report({ findings: [finding('a'), finding('b')] }), state());
    await openPage();
    fireEvent.click((await rows())[1] ?? document.body);
    expect(window.location.hash).toContain('p.torchtidy.finding=b');
    window.history.replaceState(null, '', '#torchtidy&p.torchtidy.finding=a');
    window.dispatchEvent(new PopStateEvent('popstate'));
    expect(await screen.findByRole('heading', { level: 1, name: 'Finding a' })).toBeTruthy();
  });

  it('loses a finding that is not there, with a word to the user', async () => {
    serveProfile(report({ findings: [finding('a')] }), state());
    await openPage('torchtidy&p.torchtidy.finding=gone');
    expect(await screen.findByText('That finding is not in this profile.')).toBeTruthy();
    expect(window.location.hash).toBe('#torchtidy');
  });

  it('that names a run that is not there says so, and keeps the name', async () => {
    serveProfile(report({ findings: [finding('a')] }), state());
    await openPage('torchtidy&p.torchtidy.run=gone');
    expect(await screen.findByText('There is no run “gone” here. The page shows the only run instead.')).toBeTruthy();
    expect((await rows()).length).toBe(1);
    expect(window.location.hash).toContain('run=gone');
  });

  it('chooses run, worker and span', async () => {
    const server = serveProfile(report({ findings: [finding('a')], worker: 'w2', span: '9' }), state({ worker: 'w2', span: '9' }));
    server.answers['runs'] = () => ({
      logdirs: [], scanning: false,
      runs: [{ run: 'other', profiles: [state()] }, { run: 'job', profiles: [state(), state({ worker: 'w2', span: '8' }), state({ worker: 'w2', span: '9' })] }],
    });
    await openPage('torchtidy&p.torchtidy.run=job&p.torchtidy.worker=w2');
    await rows();
    expect(server.asked).toContain('report?run=job&worker=w2&span=9');
    expect(screen.getAllByRole('combobox').map((select) => select.getAttribute('aria-label'))).toEqual(['Run', 'Worker', 'Span']);
  });
});

describe('the summary', () => {
  it('tells step time with its basis, what could be won, and how busy the device is', async () => {
    serveProfile(report({
      findings: [finding('a', { saving: null })], joint_saving: saving(24_000_000),
      devices: [{ kind: 'cuda', index: 0, name: 'NVIDIA A100', compute_capability: '8.0' }],
    }), state());
    await openPage();
    const text = (await screen.findByRole('region', { name: 'Summary of the profile' })).textContent;
    for (const part of ['100 ms', 'median of 3 steps', 'marked by the profiler', 'about 24 ms of 100 ms per step (24 %)', 'With all fixes≈ 76 ms', 'Saves at least 12 ms, at most 36 ms', 'Device busy60 %', 'NVIDIA A100', 'Where the 100 ms of the average step go', 'Device compute, mostly matrix products 50 %', 'Copies 10 %', 'Data loading 30 %', 'Not explained 10 %', '✕ no memory', '56,451 events'])
      expect(text).toContain(part);
  });

  it('counts what could be won of the step without the profiler, and says how it is known', async () => {
    serveProfile(report({
      findings: [finding('a', { saving: saving(20_000_000) }), finding('b', { saving: saving(10_000_000) })], true_step_ns: 80_000_000, step_ns: 80_000_000,
      joint_saving: saving(24_000_000, { low_ns: 20_000_000, high_ns: 40_000_000, basis: ['replayed', 'measured'] }),
    }), state());
    await openPage();
    const text = (await screen.findByRole('region', { name: 'Summary of the profile' })).textContent;
    for (const part of ['recorded; without the profiler 80 ms', 'about 24 ms of 80 ms per step (30 %)', 'With all fixes≈ 56 ms', 'Saves at least 20 ms, at most 40 ms; computed from the timeline, measured',
      'Some findings share time, so this is less than their sum.'])
      expect(text).toContain(part);
  });

  it('says nothing about a device that was not recorded', async () => {
    serveProfile(report({ findings: [finding('a')] }), state());
    await openPage();
    const text = (await screen.findByRole('region', { name: 'Summary of the profile' })).textContent;
    expect(text).not.toContain('Device busy');
    expect(text).not.toContain('With all fixes');
    expect(text).toContain('CPU only');
  });

  it('has the notes on quality', async () => {
    serveProfile(report({ quality: { partial: false, dropped_events: 3, parent_mismatch: null, notes: ['Clock was shifted.'] } }), state());
    await openPage();
    expect((await screen.findByText('▲ 2 notes on quality'))).toBeTruthy();
    expect(screen.getByText('Clock was shifted.')).toBeTruthy();
  });
});
