import { fireEvent, screen } from '@testing-library/preact';
import { expect, it, vi } from 'vitest';
import type { ProfileState } from '../api/types.gen';
import { finding, report, state } from '../testing/fixtures';
import { effects, openPage, rows } from '../testing/page';
import { serveProfile, type TestServer } from '../testing/server';

/** The page's own check every two seconds. */
const look = async () => (await import('../state/live')).look();

function holds(server: TestServer, ...profiles: ProfileState[]): void {
  server.answers.runs = () => ({ logdirs: ['/runs'], scanning: false, runs: [{ run: 'job', profiles }] });
}

it('a newer recording is offered, and what is read stays', async () => {
  const server = serveProfile(report({ findings: [finding('a')] }), state());
  await openPage();
  await rows();
  holds(server, state(), state({ span: '2' }));
  await look();
  expect(await screen.findByText('A newer recording of this job has just come in.')).toBeTruthy();
  expect((await rows()).length).toBe(1);
  expect(window.location.hash).toContain('span=1');
  fireEvent.click(screen.getByRole('button', { name: 'Show it' }));
  await vi.waitFor(() => expect(server.asked).toContain('report?run=job&worker=host_1&span=2'));
});

it('a file that has changed is offered, and nothing is asked for that did not change', async () => {
  const server = serveProfile(report({ findings: [finding('a')] }), state());
  await openPage();
  await rows();
  const before = server.asked.length;
  await look();
  expect(server.asked.slice(before)).toEqual(['runs?look=calm']);
  holds(server, state({ version: 2, recording: 2, state: 'queued' }));
  await look();
  expect(await screen.findByText('A newer recording of this profile was found.')).toBeTruthy();
});

it('a trace that could not be read is read as soon as it is another file', async () => {
  const problem = { path: 'x', error: 'No JSON.', advice: 'Record again.', recovered_events: 0 };
  const server = serveProfile(report({ findings: [finding('a')] }), state({ state: 'error', problem }));
  await openPage();
  await screen.findByRole('heading', { name: 'This trace could not be read' });
  const whole = serveProfile(report({ findings: [finding('a')] }), state({ version: 2, recording: 2 }));
  server.answers = whole.answers;
  await look();
  expect((await rows()).length).toBe(1);
});

it('an answer that is older than what the page knows changes nothing', async () => {
  const problem = { path: 'x', error: 'Broken at byte 7.', advice: 'Record again.', recovered_events: 0 };
  const server = serveProfile(report({ findings: [finding('a')] }), state({ problem }));
  await openPage();
  await rows();
  const old = server.answers.runs;
  let answer: (response: Response) => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    vi.stubGlobal('fetch', (address: string, init?: RequestInit) => {
      if (!address.includes('look=calm')) return server.fetch(address, init);
      resolve();
      return new Promise<Response>((done) => { answer = done; });
    });
  });
  const looked = look();
  await asked;
  const { noteState } = await import('../state/runs');
  noteState('job', state({ version: 2 }));
  await vi.waitFor(() => expect(screen.queryByText('Broken at byte 7.')).toBeNull());
  answer(new Response(JSON.stringify(old?.(new URLSearchParams(), null))));
  await looked;
  await effects();
  expect(screen.queryByText('Broken at byte 7.')).toBeNull();
});

it('a server that is back is asked for all at once', async () => {
  const server = serveProfile(report({ findings: [finding('a')] }), state());
  await openPage();
  await rows();
  server.down = true;
  await look();
  expect(await screen.findByText('The server does not answer.')).toBeTruthy();
  server.down = false;
  await look();
  await vi.waitFor(() => expect(screen.queryByText('The server does not answer.')).toBeNull());
});

it('an analysis is cancelled, and made on the next try', async () => {
  const problem = { path: 'x', error: 'The analysis was stopped.', advice: 'Load the trace again.', recovered_events: 0 };
  const server = serveProfile(report({ findings: [finding('a')] }), state({ state: 'analysing' }));
  const lines: ((text: string) => void)[] = [];
  server.answers['progress'] = () => new Response(new ReadableStream({ start: (to) => { lines.push((text) => { to.enqueue(new TextEncoder().encode(text)); to.close(); }); } }));
  const posted: (string | null)[] = [];
  const stopped = state({ state: 'error', problem });
  server.answers['cancel'] = (_, body) => { posted.push(body); return stopped; };
  await openPage();
  await vi.waitFor(() => expect(lines.length).toBeGreaterThan(0)); // a page may ask again: the last request counts
  fireEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
  await vi.waitFor(() => expect(posted.length).toBe(1));
  expect(JSON.parse(posted[0] ?? '')).toEqual({ run: 'job', worker: 'host_1', span: '1' });
  server.answers['report'] = () => ({ states: [stopped], report: { run: 'job', profiles: [] }, ranks: [], pending: 0 });
  lines.at(-1)?.(`${JSON.stringify(stopped)}\n`);
  expect(await screen.findByText('The analysis was stopped.')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Try again' })).toBeTruthy();
});
