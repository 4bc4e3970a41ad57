import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hostWindow, onUrl, openInWebview, readUrl, setUpDocument, whileInSight, writeUrl } from './host';

beforeEach(() => window.history.replaceState(null, '', '#torchtidy&p.other.key=1'));

it('is our own window when we stand alone', () => {
  expect(hostWindow()).toBe(window);
});

describe('the address', () => {
  it('is read and written beside the keys of others', async () => {
    writeUrl({ run: 'a&b' }, 'replace');
    expect(window.location.hash).toBe('#torchtidy&p.other.key=1&p.torchtidy.run=a%26b');
    expect(await readUrl()).toEqual({ run: 'a&b' });
  });

  it('gets a new entry in the history only when pushed and changed', () => {
    const before = window.history.length;
    writeUrl({ run: 'x' }, 'replace');
    expect(window.history.length).toBe(before);
    writeUrl({ run: 'y' }, 'push');
    writeUrl({ run: 'y' }, 'push');
    expect(window.history.length).toBe(before + 1);
  });

  it('is told of when the user goes back', () => {
    const seen: Record<string, string>[] = [];
    onUrl((keys) => seen.push(keys));
    window.history.replaceState(null, '', '#torchtidy&p.torchtidy.finding=f');
    window.dispatchEvent(new PopStateEvent('popstate'));
    expect(seen).toEqual([{ finding: 'f' }]);
  });
});

describe('a page', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  const close = (persisted = false): void =>
    void window.dispatchEvent(Object.assign(new Event('pagehide'), { persisted }));

  it('looks again by itself as long as it is in sight, and no longer than it is there', () => {
    const hidden = vi.spyOn(document, 'hidden', 'get').mockReturnValue(true);
    const look = vi.fn<() => void>();
    whileInSight(look);
    vi.advanceTimersByTime(60_000);
    expect(look).not.toHaveBeenCalled();
    hidden.mockReturnValue(false);
    document.dispatchEvent(new Event('visibilitychange'));
    expect(look).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(4_000);
    expect(look).toHaveBeenCalledTimes(3);
    close();
    vi.advanceTimersByTime(60_000);
    document.dispatchEvent(new Event('visibilitychange'));
    expect(look).toHaveBeenCalledTimes(3);
  });

  it('leaves the address alone once it is gone, but not if it may come back', async () => {
    vi.resetModules();
    const host = await import('./host');
    const seen = vi.fn<(keys: Record<string, string>) => void>();
    host.connect();
    host.onUrl(seen);
    close(true);
    host.writeUrl({ run: 'kept' }, 'replace');
    window.dispatchEvent(new PopStateEvent('popstate'));
    expect(seen).toHaveBeenCalledTimes(1);
    close();
    host.writeUrl({ run: 'late' }, 'replace');
    window.dispatchEvent(new PopStateEvent('popstate'));
    expect(window.location.hash).toContain('run=kept');
    expect(seen).toHaveBeenCalledTimes(1);
  });
});

it('gives the document a language, a title and a theme', () => {
  setUpDocument();
  expect(document.documentElement.lang).toBe('en');
  expect(document.title).toBe('TorchTidy');
  expect(document.documentElement.dataset['theme']).toBe('light');
});

describe('a line in VS Code', () => {
  const around = (...origins: string[]): unknown[] => {
    const posted: unknown[] = [];
    vi.stubGlobal('location', { ancestorOrigins: origins });
    vi.stubGlobal('parent', { parent: { postMessage: (message: unknown, to: string) => posted.push([message, to]) } });
    return posted;
  };

  it('is asked for where the page is in one of its webviews, which count lines from 0', () => {
    const posted = around('http://localhost:6006', 'vscode-webview://abc');
    expect(openInWebview('/job/train.py', 42)).toBe(true);
    expect(posted).toEqual([[{ filename: '/job/train.py', line: 41 }, 'vscode-webview://abc']]);
  });

  it('is told to no other page around TensorBoard', () => {
    const posted = around('http://localhost:6006', 'https://notebook.example');
    expect(openInWebview('/job/train.py', 42)).toBe(false);
    expect(posted).toEqual([]);
  });
});
