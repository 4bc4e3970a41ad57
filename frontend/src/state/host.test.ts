import { beforeEach, describe, expect, it } from 'vitest';
import { hostWindow, onUrl, readUrl, setUpDocument, writeUrl } from './host';

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

it('gives the document a language, a title and a theme', () => {
  setUpDocument();
  expect(document.documentElement.lang).toBe('en');
  expect(document.title).toBe('TorchTidy');
  expect(document.documentElement.dataset['theme']).toBe('light');
});
