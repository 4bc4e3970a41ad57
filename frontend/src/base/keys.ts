/** Keys and their commands. */

import { VIEWS, type View } from './views';

/** The key of a view opens it. */
export type Command = View | 'next' | 'previous' | 'open' | 'back' | 'filter' | 'next-place' | 'previous-place' | 'hottest' | 'mute' | 'help';

export interface Pressed { key: string; ctrlKey: boolean; metaKey: boolean; altKey: boolean }

export const SHORTCUTS: readonly { keys: string[]; label: string }[] = [
  { keys: ['↓', 'j'], label: 'Next finding' },
  { keys: ['↑', 'k'], label: 'Previous finding' },
  { keys: ['Enter'], label: 'Open the finding' },
  { keys: ['Esc'], label: 'Back to the list' },
  { keys: ['/'], label: 'Filter findings, operators or kernels' },
  ...VIEWS.flatMap(({ shortcut }) => (shortcut ? [{ keys: [shortcut.key], label: shortcut.does }] : [])),
  { keys: ['['], label: 'Previous place of the finding; in the timeline and the evidence: previous matched event' },
  { keys: [']'], label: 'Next place of the finding; in the timeline and the evidence: next matched event' },
  { keys: ['h'], label: 'In a source file: the line that costs most, then the next' },
  { keys: ['w', 's', '+', '−'], label: 'In the timeline: zoom' },
  { keys: ['a', 'd', '←', '→', 'Home', 'End'], label: 'In the timeline: move' },
  { keys: ['Shift ←', 'Shift →'], label: 'In the timeline: previous, next event of the row' },
  { keys: ['0'], label: 'In the timeline: all that fits' },
  { keys: ['f'], label: 'In the timeline: fold the lane of the marked event, or all' },
  { keys: ['p'], label: 'In the timeline: pin the lane of the marked event to the top, or let all lanes scroll' },
  { keys: ['i'], label: 'In the timeline: why the device idles before the marked event, or in the middle' },
  { keys: ['m'], label: 'Mute the finding, or show it again' },
  { keys: ['?'], label: 'This help' },
];

const EVERYWHERE: Record<string, Command> = {
  ...Object.fromEntries(VIEWS.flatMap(({ id, shortcut }) => (shortcut ? [[shortcut.key, id]] : []))),
  j: 'next', k: 'previous', '/': 'filter', ']': 'next-place', '[': 'previous-place', h: 'hottest', m: 'mute', '?': 'help', Escape: 'back',
};
/** Keys that scrolling areas and buttons use: ours only in the list. */
const IN_LIST: Record<string, Command> = { ArrowDown: 'next', ArrowUp: 'previous', Enter: 'open' };

/** The command of a key, or null if the key belongs to the browser or to an input. */
export function commandOf(pressed: Pressed, focus: 'list' | 'input' | 'elsewhere'): Command | null {
  if (pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  if (focus === 'input') return pressed.key === 'Escape' ? 'back' : null;
  const command = EVERYWHERE[pressed.key] ?? null;
  return command ?? (focus === 'list' ? IN_LIST[pressed.key] ?? null : null);
}
