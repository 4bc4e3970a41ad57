/** The whole page in a test: fresh modules, the real entry, only the server and the window's width are simulated. */

import { screen, within } from '@testing-library/preact';
import { render as draw } from 'preact';
import { vi } from 'vitest';

const TURNS = 10; // an answer draws, what is drawn has effects, and they may ask and draw again

/** Once the page has drawn what it has, and its effects have run: after some turns of the loop, however slow they are. */
export async function effects(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((done) => { setTimeout(done, 5); });
}

/**
 * Opens the page at an address and returns its body; `unfolded` as for a user who has opened a finding's folded parts
 * before. The page counts as out of sight: its own look every two seconds would change what a slow test sees.
 */
export async function openPage(hash = '', widthPx = 1400, unfolded = true): Promise<HTMLElement> {
  closePage();
  vi.resetModules();
  window.history.replaceState(null, '', `#${hash}`);
  const { writeSetting } = await import('../state/settings');
  writeSetting('torchtidy.unfolded', unfolded ? 'why,evidence' : '');
  setWidth(widthPx);
  vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
  const { render } = await import('../index');
  render();
  return document.body;
}

/** The page stops listening, draws nothing more, and leaves the address to the next one. */
export function closePage(): void {
  for (const root of document.querySelectorAll('#torchtidy')) draw(null, root);
  document.body.replaceChildren();
  window.dispatchEvent(new Event('pagehide'));
}

function setWidth(widthPx: number): void {
  vi.stubGlobal('matchMedia', (query: string) => Object.assign(new EventTarget(), {
    media: query, matches: widthPx <= Number(/max-width: ([\d.]+)px/.exec(query)?.[1] ?? -1),
  }));
}

/** The rows of the list, once there is one and it can be used. */
export async function rows(): Promise<HTMLElement[]> {
  const list = await screen.findByRole('listbox', { name: 'Findings' });
  await effects();
  return within(list).getAllByRole('option');
}

export const key = (name: string, target: Element = document.activeElement ?? document.body): void =>
  void target.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
