import { beforeEach, expect, it, vi } from 'vitest';
import { source } from '../testing/fixtures';
import { Refusal, serve } from '../testing/server';

const KEY = { run: 'r', worker: 'w', span: '1' };

beforeEach(() => void vi.resetModules());

it('asks for a file once', async () => {
  const server = serve({ source: () => source() });
  const { sourceOf } = await import('./source');
  const state = sourceOf(KEY, 1, '/job/train.py');
  expect(state.value.kind).toBe('loading');
  await vi.waitFor(() => expect(state.value.kind).toBe('ready'));
  expect(sourceOf(KEY, 1, '/job/train.py')).toBe(state);
  expect(server.asked.length).toBe(1);
});

it('asks again for a newer recording, and after a failure', async () => {
  const server = serve({ source: () => { throw new Refusal(500, 'No.', ''); } });
  const { sourceOf } = await import('./source');
  const state = sourceOf(KEY, 1, '/a.py');
  await vi.waitFor(() => expect(state.value).toMatchObject({ kind: 'failed', error: { message: 'No.' } }));
  server.answers['source'] = () => source();
  expect(sourceOf(KEY, 1, '/a.py')).not.toBe(state);
  expect(sourceOf(KEY, 2, '/a.py')).not.toBe(sourceOf(KEY, 1, '/a.py'));
});

it('passes on why a file is not available', async () => {
  serve({ source: () => source({ available: false, lines: [], reason: 'Not under a root.' }) });
  const { sourceOf } = await import('./source');
  const state = sourceOf(KEY, 1, '/a.py');
  await vi.waitFor(() => expect(state.value).toEqual({ kind: 'missing', reason: 'Not under a root.' }));
});
