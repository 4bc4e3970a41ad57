/** Settings that the browser remembers. TensorBoard and its plugins share the storage, so every key has our prefix. */

import { signal } from '@preact/signals';
import { editorFrom, type Editor } from '../base/editors';

const LIST_WIDTH = 'torchtidy.listWidth';
const EDITOR = 'torchtidy.editor';
const SAVINGS_IN = 'torchtidy.savingsIn';
const ROWS = 'torchtidy.rows';
export const LIST_WIDTHS = { least: 280, start: 380, most: 560 };

const clamp = (width: number): number => Math.min(LIST_WIDTHS.most, Math.max(LIST_WIDTHS.least, Math.round(width)));

/** Width of the list in pixels, null until the user has chosen one. */
export const listWidth = signal<number | null>(null);

/** The target of `Open in …`. */
export const editor = signal<Editor>('vscode');

export function setEditor(name: Editor): void {
  editor.value = name;
  writeSetting(EDITOR, name);
}

/** The unit of all savings: `µs`, `ms`, `s`, or empty for the one that fits the largest. */
export const savingsIn = signal('');

export function setSavingsIn(unit: string): void {
  savingsIn.value = unit;
  writeSetting(SAVINGS_IN, unit);
}

export type Rows = 'roomy' | 'close';

/** The density of the list of findings. */
export const rowsStand = signal<Rows>('roomy');

export function setRows(rows: Rows): void {
  rowsStand.value = rows;
  writeSetting(ROWS, rows);
}

export function restoreSettings(): void {
  savingsIn.value = readSetting(SAVINGS_IN) ?? '';
  rowsStand.value = readSetting(ROWS) === 'close' ? 'close' : 'roomy';
  editor.value = editorFrom(readSetting(EDITOR) ?? '');
  const width = Number(readSetting(LIST_WIDTH));
  listWidth.value = width > 0 ? clamp(width) : null;
}

export function setListWidth(width: number): void {
  listWidth.value = clamp(width);
  writeSetting(LIST_WIDTH, String(listWidth.value));
}

/** A browser may forbid storage to frames: then settings last as long as the page. */
export function readSetting(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function writeSetting(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // nothing to do: see readSetting()
  }
}
