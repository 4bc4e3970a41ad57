import { expect, it, vi } from 'vitest';
import type { Span } from '../base/timelineWindow';
import { KEPT_TILES, slices } from './slices';

const LIMITS = { from: 0, to: 2 ** 24 };
const BARS = { lane: [], depth: [], start_ns: [], duration_ns: [], busy_ns: [], events: [], id: [], name: [], category: [], marked: [] };

/** Answers with their window as their name. */
function server() {
  const asked: string[] = [];
  return { asked, ask: async ({ from, to }: Span) => { asked.push(`${from}-${to}`); return { bars: BARS, names: [`${from}-${to}`] }; } };
}

const drawn = (of: ReturnType<typeof slices>): unknown[] => of.pieces.value.map(({ names, clip }) => [names[0], clip.from, clip.to]);

it('asks for what is in sight, then for what is beside and around it, each once', async () => {
  const { asked, ask } = server();
  const known = slices(ask, LIMITS);
  known.need({ from: 4096, to: 8192 });
  expect(asked).toEqual(['4096-8192']);
  await vi.waitFor(() => expect(asked).toEqual(['4096-8192', '0-4096', '8192-12288', '0-8192']));
  expect(drawn(known)).toEqual([['4096-8192', 4096, 8192]]);
  expect(known.complete.value).toBe(true);
  known.need({ from: 4100, to: 8190 });
  await Promise.resolve();
  expect(asked.length).toBe(4);
});

it('shows a coarser piece until the finer one comes', async () => {
  const { ask } = server();
  const known = slices(ask, LIMITS);
  known.need({ from: 0, to: 65_536 });
  await vi.waitFor(() => expect(known.complete.value).toBe(true));
  known.need({ from: 1024, to: 2048 });
  expect(drawn(known)).toEqual([['0-65536', 1024, 2048]]);
  expect(known.complete.value).toBe(false);
  await vi.waitFor(() => expect(drawn(known)).toEqual([['1024-2048', 1024, 2048]]));
});

it('keeps the last tiles only', async () => {
  const { asked, ask } = server();
  const known = slices(ask, LIMITS);
  for (let at = 0; at <= 2 * KEPT_TILES; at += 1) {
    known.need({ from: at * 4096, to: (at + 1) * 4096 });
    await vi.waitFor(() => expect(known.complete.value).toBe(true));
  }
  await new Promise((done) => { setTimeout(done, 0); });
  asked.length = 0;
  known.need({ from: 0, to: 4096 });
  expect(asked).toEqual(['0-4096']);
});

it('says why there is nothing, and asks again only when told to', async () => {
  const ask = vi.fn<(window: Span) => Promise<{ bars: typeof BARS; names: string[] }>>().mockRejectedValueOnce(new Error('no')).mockResolvedValue({ bars: BARS, names: ['x'] });
  const known = slices(ask, LIMITS);
  known.need({ from: 0, to: 64 });
  await vi.waitFor(() => expect(known.error.value?.message).toContain('no'));
  expect(ask).toHaveBeenCalledTimes(1);
  known.again();
  await vi.waitFor(() => expect(known.complete.value).toBe(true));
  expect(known.error.value).toBeNull();
});
