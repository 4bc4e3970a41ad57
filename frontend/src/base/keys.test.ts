import { describe, expect, it } from 'vitest';
import { commandOf, SHORTCUTS } from './keys';

const press = (key: string, focus: 'list' | 'input' | 'elsewhere' = 'elsewhere', more = {}): string | null =>
  commandOf({ key, ctrlKey: false, metaKey: false, altKey: false, ...more }, focus);

describe('keys', () => {
  it('move in the list', () => {
    expect([press('j'), press('k'), press('ArrowDown', 'list'), press('ArrowUp', 'list')]).toEqual(['next', 'previous', 'next', 'previous']);
  });

  it('leave arrows and Enter to scrolling areas and buttons', () => {
    expect([press('ArrowDown'), press('Enter')]).toEqual([null, null]);
    expect(press('Enter', 'list')).toBe('open');
  });

  it('leave inputs alone, except for the way out', () => {
    expect([press('j', 'input'), press('/', 'input'), press('?', 'input')]).toEqual([null, null, null]);
    expect(press('Escape', 'input')).toBe('back');
  });

  it('leave the browser its own', () => {
    for (const modifier of ['ctrlKey', 'metaKey', 'altKey']) expect(press('s', 'elsewhere', { [modifier]: true })).toBeNull();
  });

  it('are all in the help', () => {
    const helped = SHORTCUTS.flatMap((shortcut) => shortcut.keys);
    expect(['j', 'k', '/', 's', '[', ']', '?', 'c', 'Enter', 'Esc', '↑', '↓'].every((key) => helped.includes(key))).toBe(true);
  });
});
