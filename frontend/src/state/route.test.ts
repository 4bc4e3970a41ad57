import { beforeEach, expect, it, vi } from 'vitest';
import { go, restore, route } from './route';

beforeEach(() => {
  vi.useFakeTimers();
  window.history.replaceState(null, '', '#torchtidy');
  restore({});
});

it('writes a push at once', () => {
  go({ finding: 'a' }, 'push');
  expect(window.location.hash).toContain('finding=a');
});

it('changes at once but writes one entry once the walk has settled', () => {
  const before = window.history.length;
  for (const finding of ['a', 'b', 'c']) go({ finding }, 'settle');
  expect(route.value.finding).toBe('c');
  expect(window.location.hash).toBe('#torchtidy');
  vi.advanceTimersByTime(1000);
  expect(window.location.hash).toContain('finding=c');
  expect(window.history.length).toBe(before + 1);
});

it('forgets a walk that was not settled when the user goes back', () => {
  go({ finding: 'a' }, 'settle');
  restore({ finding: 'before' });
  vi.advanceTimersByTime(1000);
  expect(route.value.finding).toBe('before');
  expect(window.location.hash).toBe('#torchtidy');
});
