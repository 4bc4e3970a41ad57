import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Refusal, serve } from '../testing/server';
import { ApiError, getProgress, getRuns, getSource, postMutes, ServerGone } from './client';

const KEY = { run: 'a b', worker: 'w', span: '1' };

beforeEach(() => void vi.unstubAllGlobals());

const stream = (...pieces: string[]): Response => new Response(new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
    controller.close();
  },
}));

it('asks by relative addresses with encoded values', async () => {
  const server = serve({ source: () => ({ file: 'x' }) });
  await getSource({ ...KEY, file: '/a&b.py' });
  expect(server.asked).toEqual(['source?run=a%20b&worker=w&span=1&file=%2Fa%26b.py']);
});

it('gives the same object for the same ETag, so that nothing is drawn again', async () => {
  const server = serve({ runs: () => ({ logdirs: ['/a'], scanning: false, runs: [] }) });
  const first = await getRuns({});
  expect(await getRuns({})).toBe(first);
  server.answers['runs'] = () => ({ logdirs: ['/b'], scanning: false, runs: [] });
  expect(await getRuns({})).toMatchObject({ logdirs: ['/b'] });
});

describe('faults', () => {
  it('carry the server’s words and advice', async () => {
    serve({ runs: () => { throw new Refusal(500, 'Disk on fire.', 'Run.'); } });
    const error = await getRuns({}).catch((fault: unknown) => fault);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ info: { code: 500, message: 'Disk on fire.', advice: 'Run.' } });
  });

  it('have words of their own where the server has none', async () => {
    serve({ runs: () => new Response('<html>', { status: 500 }) });
    await expect(getRuns({})).rejects.toMatchObject({ info: { code: 500 } });
  });

  it('are the server’s own also where their status is one that proxies use', async () => {
    serve({ runs: () => { throw new Refusal(503, 'Too many readers.', 'Ask again.'); } });
    await expect(getRuns({})).rejects.toMatchObject({ info: { message: 'Too many readers.' } });
  });

  it('tell a server that is gone, also behind a proxy', async () => {
    const server = serve({ runs: () => new Response('', { status: 502 }) });
    await expect(getRuns({})).rejects.toBeInstanceOf(ServerGone);
    server.down = true;
    await expect(getRuns({})).rejects.toBeInstanceOf(ServerGone);
  });
});

describe('an answer that needs an analysis that goes on', () => {
  const ALREADY = { file: 'train.py', lines: ['x = 1'] };
  const NOTHING = { findings: [], rules: [] };
  let over = false;
  beforeEach(() => {
    over = false;
    serve({ source: () => { if (over) return ALREADY; throw new Refusal(202, 'The trace is still being analysed.', 'Ask again in a moment.'); } });
  });

  it('is asked for until it is there', async () => {
    setTimeout(() => { over = true; }, 100);
    expect(await getSource({ ...KEY, file: 'train.py' })).toEqual(ALREADY);
  });

  it('is given up with the question', async () => {
    const turn = new AbortController();
    setTimeout(() => turn.abort(), 100);
    await expect(getSource({ ...KEY, file: 'train.py' }, turn.signal)).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('is refused where something was to be changed', async () => {
    serve({ mutes: () => { throw new Refusal(202, 'The trace is still being analysed.', 'Ask again in a moment.'); } });
    await expect(postMutes({ mute: NOTHING, unmute: NOTHING })).rejects.toMatchObject({ info: { code: 202 } });
  });
});

it('reads progress line by line', async () => {
  serve({ progress: () => stream('{"fraction":0.5}\n{"frac', 'tion":1}\n') });
  const fractions = [];
  for await (const state of getProgress(KEY, new AbortController().signal)) fractions.push(state.fraction);
  expect(fractions).toEqual([0.5, 1]);
});
