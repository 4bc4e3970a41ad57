/** TensorBoard's page around ours: its address, its theme, its messages. The only file that touches the parent window. */

import { parseHash, withHash } from '../base/hash';

type Handler = (payload: unknown) => void;
interface Message { type: string; id: number; payload: unknown; isReply: boolean }

const LOOK_AGAIN_MS = 2_000;

const pending = new Map<number, (payload: unknown) => void>();
const handlers = new Map<string, Handler>();
let port: MessagePort | undefined;
let messages = 0;

/** True outside TensorBoard, under `tb-tidy serve`. */
export const standsAlone = (): boolean => window.parent === window;

/** The window with the user's address: the parent's, our own if we stand alone, null if access is forbidden. */
export function hostWindow(): Window | null {
  if (standsAlone()) return window;
  try {
    void window.parent.location.href;
    return window.parent;
  } catch {
    return null;
  }
}

let isGone = false;

/** Calls once the page's frame has gone for good; not if the browser may show it again. */
function whenGone(handler: () => void): void {
  const hidden = (event: PageTransitionEvent): void => {
    if (event.persisted) return;
    window.removeEventListener('pagehide', hidden);
    handler();
  };
  window.addEventListener('pagehide', hidden);
}

export function connect(): void {
  whenGone(() => { isGone = true; });
  if (standsAlone()) return;
  const channel = new MessageChannel();
  port = channel.port1;
  port.addEventListener('message', (event) => receive(channel.port1, event.data));
  port.start();
  window.parent.postMessage('experimental.bootstrap', window.location.origin, [channel.port2]);
}

function receive(from: MessagePort, data: unknown): void {
  const message = messageOf(data);
  if (!message) return;
  const { type, id, payload } = message;
  if (message.isReply) {
    pending.get(id)?.(payload);
    pending.delete(id);
    return;
  }
  handlers.get(type)?.(payload);
  from.postMessage(JSON.stringify({ type, id, payload: null, error: null, isReply: true }));
}

function messageOf(data: unknown): Message | null {
  if (typeof data !== 'string') return null;
  const message: Partial<Message> = JSON.parse(data);
  const { type, id, payload, isReply } = message;
  return typeof type === 'string' && typeof id === 'number' ? { type, id, payload, isReply: isReply === true } : null;
}

function send(type: string): Promise<unknown> {
  return new Promise((resolve) => {
    if (!port) {
      resolve(undefined);
      return;
    }
    messages += 1;
    pending.set(messages, resolve);
    port.postMessage(JSON.stringify({ type, id: messages, payload: null, error: null, isReply: false }));
  });
}

/** The user pressed TensorBoard's reload button, or its automatic reload is due. */
export function onDataReloaded(handler: () => void): void {
  handlers.set('experimental.DataReloaded', handler);
}

/** Every two seconds while the page is visible, and whenever it becomes visible, until it is gone. */
export function whileInSight(handler: () => void): void {
  const look = (): void => {
    if (!document.hidden) handler();
  };
  const timer = setInterval(look, LOOK_AGAIN_MS);
  document.addEventListener('visibilitychange', look);
  whenGone(() => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', look);
  });
}

/** Our keys of the address. TensorBoard's own answer is empty on the first load, so it is the second choice. */
export async function readUrl(): Promise<Record<string, string>> {
  const host = hostWindow();
  if (host) return parseHash(host.location.hash);
  const answer = await send('experimental.GetURLPluginData');
  if (typeof answer !== 'object' || answer === null) return {};
  return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, String(value)]));
}

/** Changes our keys; nothing once our frame is gone, since late answers and timers concern nobody then. */
export function writeUrl(changes: Record<string, string | null>, how: 'push' | 'replace'): void {
  const host = hostWindow();
  if (!host || isGone) return;
  const hash = withHash(host.location.hash, changes);
  if (hash === host.location.hash) return;
  const url = host.location.href.replace(/#.*$/, '') + hash; // complete, since a base element may redirect a bare hash
  if (how === 'push') host.history.pushState(host.history.state, '', url);
  else host.history.replaceState(host.history.state, '', url);
}

/** Back, Forward, or an address typed by hand. */
export function onUrl(handler: (keys: Record<string, string>) => void): void {
  const host = hostWindow();
  if (!host) return;
  const moved = (): void => handler(parseHash(host.location.hash));
  host.addEventListener('popstate', moved);
  whenGone(() => host.removeEventListener('popstate', moved));
}

/** The address to share. */
export const shareUrl = (): string => hostWindow()?.location.href ?? window.location.href;

const WEBVIEW = 'vscode-webview:';

/**
 * Asks VS Code to show a line if TensorBoard's page is inside one of its webviews, in which links do not work. False
 * otherwise.
 */
export function openInWebview(filename: string, line: number): boolean {
  const [, outside] = window.location.ancestorOrigins ?? []; // of the page around TensorBoard's
  if (!outside?.startsWith(WEBVIEW)) return false;
  window.parent.parent.postMessage({ filename, line: line - 1 }, outside);
  return true;
}

/** Language, title and theme. The host page toggles `dark-mode` on its body. */
export function setUpDocument(): void {
  const root = document.documentElement;
  root.lang = 'en';
  document.title = 'TorchTidy';
  const host = hostWindow();
  const body = host === window ? null : host?.document.body ?? null;
  const media = matchMedia('(prefers-color-scheme: dark)');
  const print = matchMedia('print'); // on paper there is no dark background for bright text
  const apply = (): void => {
    const dark = !print.matches && (body ? body.classList.contains('dark-mode') : media.matches);
    root.dataset['theme'] = dark ? 'dark' : 'light';
    root.style.colorScheme = dark ? 'dark' : 'light';
  };
  apply();
  print.addEventListener('change', apply);
  if (body) new MutationObserver(apply).observe(body, { attributes: true, attributeFilter: ['class'] });
  else media.addEventListener('change', apply);
}

/** Styles as a constructed sheet, without a file or an inline style element of their own. */
export function addCss(text: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
