import { expect, it } from 'vitest';
import { blocks } from './markdown';

it('joins the lines of a paragraph', () => {
  expect(blocks('one\ntwo\n\nthree')).toEqual([{ kind: 'paragraph', text: 'one two' }, { kind: 'paragraph', text: 'three' }]);
});

it('keeps code as it is, blank lines included', () => {
  expect(blocks('before\n```python\nif a:\n    b()\n\nc()\n```\nafter')).toEqual([
    { kind: 'paragraph', text: 'before' }, { kind: 'code', text: 'if a:\n    b()\n\nc()' }, { kind: 'paragraph', text: 'after' },
  ]);
});

it('takes the common indent off code', () => {
  expect(blocks('```\n  a\n    b\n```')).toEqual([{ kind: 'code', text: 'a\n  b' }]);
});

it('reads a fence that is never closed to the end', () => {
  expect(blocks('```\na')).toEqual([{ kind: 'code', text: 'a' }]);
});

it('reads lists with items of several lines, after prose or alone', () => {
  expect(blocks('These:\n- one\n  more\n- two\n\n1. first\n2. second')).toEqual([
    { kind: 'paragraph', text: 'These:' },
    { kind: 'list', ordered: false, items: ['one more', 'two'] },
    { kind: 'list', ordered: true, items: ['first', 'second'] },
  ]);
});
