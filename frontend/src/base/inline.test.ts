import { describe, expect, it } from 'vitest';
import { codeSpans, inlineSpans, plainText } from './inline';

describe('messages', () => {
  it('split at backticks', () => {
    expect(codeSpans('`a.item()` waits for `b`')).toEqual([
      { kind: 'code', text: 'a.item()' }, { kind: 'text', text: ' waits for ' }, { kind: 'code', text: 'b' },
    ]);
  });

  it('leave stars, brackets and a lone backtick as they are', () => {
    expect(codeSpans('x * y ** 2 [link](https://a.b) `')).toEqual([{ kind: 'text', text: 'x * y ** 2 [link](https://a.b) `' }]);
  });

  it('have a plain form for titles', () => {
    expect(plainText('`a` and `b`')).toBe('a and b');
  });
});

describe('pages', () => {
  it('know strong, emphasis and links to the web', () => {
    expect(inlineSpans('**one** *two* [three](https://x.y/z)')).toEqual([
      { kind: 'strong', text: 'one' }, { kind: 'text', text: ' ' }, { kind: 'emphasis', text: 'two' },
      { kind: 'text', text: ' ' }, { kind: 'link', text: 'three', url: 'https://x.y/z' },
    ]);
  });

  it('make no link of other schemes', () => {
    expect(inlineSpans('[x](javascript:alert(1))').some((span) => span.kind === 'link')).toBe(false);
  });

  it('leave marks inside code alone', () => {
    expect(inlineSpans('`a ** b`')).toEqual([{ kind: 'code', text: 'a ** b' }]);
  });

  it('leave products alone', () => {
    expect(inlineSpans('2 * 3 * 4')).toEqual([{ kind: 'text', text: '2 * 3 * 4' }]);
  });
});
