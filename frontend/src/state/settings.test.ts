import { expect, it, vi } from 'vitest';
import { editor, listWidth, restoreSettings, rowsStand, savingsIn, setEditor, setListWidth, setRows, setSavingsIn } from './settings';

it('remembers the width of the list within its bounds, under a key of our own', () => {
  setListWidth(9000);
  expect(listWidth.value).toBe(560);
  expect(Object.keys(localStorage).every((key) => key.startsWith('torchtidy.'))).toBe(true);
  listWidth.value = null;
  restoreSettings();
  expect(listWidth.value).toBe(560);
});

it('remembers the editor, and takes only those that it knows', () => {
  setEditor('cursor');
  editor.value = 'vscode';
  restoreSettings();
  expect(editor.value).toBe('cursor');
  localStorage.setItem('torchtidy.editor', 'javascript:alert(1)//');
  restoreSettings();
  expect(editor.value).toBe('vscode');
});

it('remembers the unit of savings and how close findings stand', () => {
  setSavingsIn('µs');
  setRows('close');
  savingsIn.value = '';
  rowsStand.value = 'roomy';
  restoreSettings();
  expect([savingsIn.value, rowsStand.value]).toEqual(['µs', 'close']);
  localStorage.clear();
});

it('works where the browser forbids storage', () => {
  vi.stubGlobal('localStorage', { getItem: () => { throw new Error('denied'); }, setItem: () => { throw new Error('denied'); } });
  restoreSettings();
  setListWidth(300);
  expect(listWidth.value).toBe(300);
});
