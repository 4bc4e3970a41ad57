import { describe, expect, it } from 'vitest';
import { commandOf, SHORTCUTS } from './keys';
import { VIEWS } from './views';

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

  it('lead to the views that have one, and mean nothing else', () => {
    const led = VIEWS.flatMap(({ id, shortcut }) => (shortcut ? [[id, press(shortcut.key)]] : []));
    expect(led).toEqual([['runs', 'runs'], ['timeline', 'timeline'], ['source', 'source'], ['compare', 'compare']]);
  });

  it('are all in the help', () => {
    const helped = SHORTCUTS.flatMap((shortcut) => shortcut.keys);
    expect(['j', 'k', '/', 's', '[', ']', '?', 'c', 'Enter', 'Esc', '↑', '↓'].every((key) => helped.includes(key))).toBe(true);
  });
});
