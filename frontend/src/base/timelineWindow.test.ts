import { describe, expect, it } from 'vitest';
import { around, levelOf, nextTiles, panned, parentOf, showing, spanFrom, spanText, tileSpan, tilesOf, timeMarks, within, zoomed } from './timelineWindow';

const ALL = { from: 0, to: 1_000_000 };

describe('zoom and pan', () => {
  it('keeps the time under the pointer where it is', () => {
    const before = { from: 200_000, to: 300_000 };
    const after = zoomed(before, 0.5, 225_000, ALL);
    expect(after).toEqual({ from: 212_500, to: 262_500 });
    expect((225_000 - after.from) / 50_000).toBe((225_000 - before.from) / 100_000);
  });
  it('never leaves the recording', () => {
    expect(zoomed({ from: 0, to: 500_000 }, 8, 100, ALL)).toEqual(ALL);
    expect(panned({ from: 900_000, to: 950_000 }, 4, ALL)).toEqual({ from: 950_000, to: 1_000_000 });
    expect(panned({ from: 10, to: 50_010 }, -1, ALL)).toEqual({ from: 0, to: 50_000 });
    expect(within({ from: -50, to: 5_000_000 }, ALL)).toEqual(ALL);
  });
  it('stops at the ends of the recording', () => {
    const { from, to } = zoomed({ from: 100, to: 140 }, 0.001, 120, ALL);
    expect(to - from).toBe(20);
  });
  it('comes back to where it began', () => {
    const before = { from: 200_000, to: 300_000 };
    const after = zoomed(zoomed(before, 0.8, 250_000, ALL), 1.25, 250_000, ALL);
    expect(after.from).toBeCloseTo(before.from, 3);
    expect(after.to).toBeCloseTo(before.to, 3);
  });
});

describe('windows of events', () => {
  it('has twice the event on each side', () => {
    expect(around({ start_ns: 100_000, duration_ns: 10_000 }, ALL)).toEqual({ from: 80_000, to: 130_000 });
  });
  it('leaves a window alone that shows the event', () => {
    const window = { from: 0, to: 100_000 };
    expect(showing(window, { start_ns: 500, duration_ns: 9000 }, ALL)).toBe(window);
    expect(showing(window, { start_ns: 500_000, duration_ns: 9000 }, ALL)).toEqual({ from: 454_500, to: 554_500 });
    expect(showing(window, { start_ns: 500_000, duration_ns: 10 }, ALL)).toEqual({ from: 498_000, to: 502_010 });
  });
  it('goes through the address and back', () => {
    expect(spanFrom(spanText({ from: 12.7, to: 99.1 }))).toEqual({ from: 12, to: 100 });
    for (const text of ['', '5', '9-3', '5-5', '-1-5', '1e3-5', `1-${'9'.repeat(17)}`]) expect(spanFrom(text)).toBeNull();
  });
});

describe('tiles', () => {
  it('two at most cover any window, without a gap', () => {
    for (let from = 0; from < 300_000; from += 7919) {
      const window = { from, to: from + 61_234 };
      const tiles = tilesOf(window, ALL);
      expect(tiles.length).toBeLessThanOrEqual(2);
      const spans = tiles.map(tileSpan);
      expect(Math.min(...spans.map((span) => span.from))).toBeLessThanOrEqual(window.from);
      expect(Math.max(...spans.map((span) => span.to))).toBeGreaterThanOrEqual(window.to);
      expect(spans[1]?.from ?? spans[0]?.to).toBe(spans[0]?.to);
    }
  });
  it('stay the same while a window moves a little', () => {
    expect(tilesOf({ from: 70_000, to: 100_000 }, ALL)).toEqual(tilesOf({ from: 70_900, to: 100_900 }, ALL));
  });
  it('lie in their parent', () => {
    const tile = { level: 10, index: 5 };
    expect(tileSpan(parentOf(tile))).toEqual({ from: 4096, to: 6144 });
  });
  it('fetches neighbours and the view from farther away beforehand', () => {
    const window = { from: 262_144, to: 393_216 };
    expect(levelOf(window)).toBe(17);
    expect(nextTiles(window, ALL)).toEqual([{ level: 17, index: 1 }, { level: 17, index: 3 }, { level: 18, index: 1 }]);
  });
});

it('marks round times', () => {
  expect(timeMarks({ from: 0, to: 1000 }, 500)).toEqual({ step: 200, at: [0, 200, 400, 600, 800, 1000] });
  expect(timeMarks({ from: 130, to: 190 }, 300).at).toEqual([140, 160, 180]);
});
