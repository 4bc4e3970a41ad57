/** What the browser remembers. TensorBoard and its plugins share the storage, so every key has our prefix. */

import { signal } from '@preact/signals';
import { editorFrom, type Editor } from '../base/editors';

const LIST_WIDTH = 'torchtidy.listWidth';
const EDITOR = 'torchtidy.editor';
export const LIST_WIDTHS = { least: 280, start: 380, most: 560 };

const clamp = (width: number): number => Math.min(LIST_WIDTHS.most, Math.max(LIST_WIDTHS.least, Math.round(width)));

/** Width of the list in pixels, null as long as the user has not chosen one. */
export const listWidth = signal<number | null>(null);

/** Where `Open in …` opens. */
export const editor = signal<Editor>('vscode');

export function setEditor(name: Editor): void {
  editor.value = name;
  writeSetting(EDITOR, name);
}

export function restoreSettings(): void {
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
