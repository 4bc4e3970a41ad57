import { renderHook, waitFor } from '@testing-library/preact';
import { beforeEach, expect, it, vi } from 'vitest';
import { source } from '../testing/fixtures';
import { Refusal, serve } from '../testing/server';

const PROFILE = { worker: 'w', span: '1', recording: 1 };

/** The hook in fresh modules, with a profile selected. */
async function opened(answer: () => unknown) {
  const server = serve({ source: answer, runs: () => ({ logdirs: [], scanning: false, runs: [{ run: 'r', profiles: [PROFILE] }] }) });
  const { useSource } = await import('./source');
  await (await import('./runs')).refreshRuns();
  const { result, rerender } = renderHook(({ file }) => useSource(file), { initialProps: { file: '/a.py' } });
  return { server, result, show: (file: string) => rerender({ file }), asked: () => server.asked.filter((each) => each.startsWith('source')) };
}

beforeEach(() => void vi.resetModules());

it('asks for a file once', async () => {
  const { result, show, asked } = await opened(() => source());
  expect(result.current.kind).toBe('loading');
  await waitFor(() => expect(result.current.kind).toBe('ready'));
  show('/b.py');
  await waitFor(() => expect(result.current.kind).toBe('ready'));
  show('/a.py');
  expect(result.current.kind).toBe('ready');
  expect(asked().map((each) => each.slice(each.indexOf('file')))).toEqual(['file=%2Fa.py', 'file=%2Fb.py']);
});

it('asks again after a failure, when told to', async () => {
  const { server, result } = await opened(() => { throw new Refusal(500, 'No.', ''); });
  await waitFor(() => expect(result.current).toMatchObject({ kind: 'failed', error: { message: 'No.' } }));
  server.answers['source'] = () => source();
  if (result.current.kind === 'failed') result.current.again();
  await waitFor(() => expect(result.current.kind).toBe('ready'));
});

it('passes on why a file is not available', async () => {
  const { result } = await opened(() => source({ available: false, lines: [], reason: 'Not under a root.' }));
  await waitFor(() => expect(result.current).toEqual({ kind: 'missing', reason: 'Not under a root.' }));
});
