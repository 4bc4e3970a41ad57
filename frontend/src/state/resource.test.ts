import { act, renderHook } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError, ServerGone } from '../api/client';
import { gone } from './connection';
import { polled, resource, useResource, type Question } from './resource';

/** A request that the test answers, and the list of requests. */
function manual<A>() {
  const asked: { given: AbortSignal; show: (answer: A) => void; answer: (answer: A) => void; fail: (error: unknown) => void }[] = [];
  const question: Question<A> = (given, show) => new Promise((answer, fail) => { asked.push({ given, show, answer, fail }); });
  return { asked, question };
}

const WAITING: { turn: number | null } = { turn: null };
const NO = new ApiError({ code: 500, message: 'No.', advice: '' });
const settle = (): Promise<void> => act(async () => { await vi.advanceTimersByTimeAsync(50); });

beforeEach(() => { vi.useFakeTimers(); gone.value = false; });
afterEach(() => void vi.useRealTimers());

describe('a resource', () => {
  it('gives a question up for a newer one under its key, whose answer a late one does not overwrite', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    const first = known.ask('a', question);
    const second = known.ask('a', question);
    expect(asked.map(({ given }) => given.aborted)).toEqual([true, false]);
    asked[1]?.answer('new');
    expect(await second).toBe(true);
    asked[0]?.show('old');
    asked[0]?.answer('old');
    expect(await first).toBe(false);
    expect([...known.answers.value]).toEqual([['a', 'new']]);
    expect(known.asking.value.size).toBe(0);
  });

  it('does not tell that a question failed which it has given up', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    const outcome = known.ask('a', question);
    known.stop('a');
    asked[0]?.fail(new ServerGone());
    expect(await outcome).toBe(false);
    expect([known.failures.value.size, gone.value]).toEqual([0, false]);
  });

  it('asks under several keys at once, unless it is to ask alone', () => {
    const { asked, question } = manual<string>();
    const [several, one] = [resource<string>(), resource<string>({ alone: true })];
    for (const known of [several, one]) for (const key of ['a', 'b']) void known.ask(key, question);
    expect(asked.map(({ given }) => given.aborted)).toEqual([false, false, true, false]);
    expect([[...several.asking.value.keys()], [...one.asking.value.keys()]]).toEqual([['a', 'b'], ['b']]);
  });

  it('keeps the last answers, and what is shown before the last', async () => {
    const known = resource<number>({ keep: 2 });
    for (const [at, key] of ['a', 'b', 'a', 'c'].entries()) {
      await known.ask(key, async (_given, show) => {
        show(-1);
        expect(known.answers.value.get(key)).toBe(-1);
        return at;
      });
    }
    expect([...known.answers.value]).toEqual([['a', 2], ['c', 3]]);
  });

  it('notes a server that is gone, and one that answers again', async () => {
    const known = resource<number>();
    await known.ask('a', () => Promise.reject(new ServerGone()));
    expect([gone.value, known.failures.value.get('a')]).toEqual([true, null]);
    await known.ask('a', async () => 1);
    expect([gone.value, known.failures.value.size]).toEqual([false, 0]);
  });
});

describe('a component', () => {
  it('gives up the question of a key that it no longer shows', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    const { result, rerender } = renderHook(({ key }) => useResource(known, key, question), { initialProps: { key: 'a' } });
    await settle();
    rerender({ key: 'b' });
    await settle();
    expect(asked.map(({ given }) => given.aborted)).toEqual([true, false]);
    asked[0]?.answer('of a');
    asked[1]?.answer('of b');
    await settle();
    expect(result.current).toEqual({ kind: 'ready', answer: 'of b' });
    expect([...known.answers.value.keys()]).toEqual(['b']);
  });

  it('asks again when told to after a failure', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    const { result } = renderHook(() => useResource(known, 'a', question));
    await settle();
    asked[0]?.fail(NO);
    await settle();
    expect(result.current).toMatchObject({ kind: 'failed', error: { message: 'No.' } });
    if (result.current.kind === 'failed') result.current.again();
    await settle();
    expect([asked.length, result.current.kind]).toEqual([2, 'loading']);
    asked[1]?.answer('there');
    await settle();
    expect(result.current).toEqual({ kind: 'ready', answer: 'there' });
  });

  it('keeps the known answer while it asks again, or shows that it waits', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    known.put('a', 'old');
    const { result, rerender } = renderHook(({ turn }) => useResource(known, 'a', question, turn), { initialProps: WAITING });
    await settle();
    expect([asked.length, result.current]).toEqual([0, { kind: 'ready', answer: 'old' }]);
    rerender({ turn: 1 });
    await settle();
    expect([asked.length, result.current]).toEqual([1, { kind: 'ready', answer: 'old' }]);
    asked[0]?.answer('new');
    await settle();
    expect(result.current).toEqual({ kind: 'ready', answer: 'new' });
  });

  it('does not ask again for what never changes', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>({ once: true });
    known.put('a', 'known');
    renderHook(() => useResource(known, 'a', question));
    await settle();
    expect(asked.length).toBe(0);
  });

  it('shares a question with others, and the last to leave gives it up', async () => {
    const { asked, question } = manual<string>();
    const known = resource<string>();
    const both = [0, 1].map(() => renderHook(() => useResource(known, 'a', question)));
    await settle();
    both[0]?.unmount();
    await settle();
    expect(asked.map(({ given }) => given.aborted)).toEqual([false]);
    both[1]?.unmount();
    await settle();
    expect(asked.map(({ given }) => given.aborted)).toEqual([true]);
  });

  it('asks nothing without a key', async () => {
    const { asked, question } = manual<string>();
    const { result } = renderHook(() => useResource(resource<string>(), '', question));
    await settle();
    expect([asked.length, result.current.kind]).toEqual([0, 'loading']);
  });

  it('polls until there is an answer, and no more once it has left the screen', async () => {
    const ask = vi.fn<() => Promise<string | null>>().mockResolvedValue(null);
    const known = resource<string>();
    const { unmount } = renderHook(() => useResource(known, 'a', (given) => polled(ask, given, 1000)));
    await settle();
    await vi.advanceTimersByTimeAsync(2000);
    expect(ask).toHaveBeenCalledTimes(3);
    unmount();
    await settle();
    await vi.advanceTimersByTimeAsync(5000);
    expect(ask).toHaveBeenCalledTimes(3);
  });
});

it('polls to the answer', async () => {
  const ask = vi.fn<() => Promise<string | null>>().mockResolvedValueOnce(null).mockResolvedValue('there');
  const answer = polled(ask, new AbortController().signal, 1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await answer).toBe('there');
});
