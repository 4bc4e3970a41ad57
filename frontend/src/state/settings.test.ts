import { expect, it, vi } from 'vitest';
import { listWidth, restoreSettings, setListWidth } from './settings';

it('remembers the width of the list within its bounds, under a key of our own', () => {
  setListWidth(9000);
  expect(listWidth.value).toBe(560);
  expect(Object.keys(localStorage).every((key) => key.startsWith('torchtidy.'))).toBe(true);
  listWidth.value = null;
  restoreSettings();
  expect(listWidth.value).toBe(560);
});

it('works where the browser forbids storage', () => {
  vi.stubGlobal('localStorage', { getItem: () => { throw new Error('denied'); }, setItem: () => { throw new Error('denied'); } });
  restoreSettings();
  setListWidth(300);
  expect(listWidth.value).toBe(300);
});
