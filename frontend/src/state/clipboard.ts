/** Copying, also where the clipboard's own interface is missing (pages not from localhost and without TLS). */

import { announce, toast } from './notices';

export async function copy(text: string, what: string): Promise<boolean> {
  const done = await viaClipboard(text) || viaSelection(text);
  if (done) announce(`${what} copied`);
  else toast('The browser did not allow copying.');
  return done;
}

async function viaClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function viaSelection(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
