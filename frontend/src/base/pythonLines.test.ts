import { expect, it } from 'vitest';
import { pythonLines } from './pythonLines';

const text = (code: string): string => pythonLines(code).map((line) => line.map((token) => token.text).join('')).join('\n');

it('loses and adds nothing', () => {
  const code = 'def f(x):\n    """a\n    <b>&amp;</b>\n    """\n\n    return f"{x!r} <script>"  # done\n';
  expect(text(code)).toBe(code);
});

it('knows a line in the middle of a long string', () => {
  const [, middle] = pythonLines('x = """one\ntwo\nthree"""');
  expect(middle).toEqual([{ text: 'two', scope: 'string' }]);
});

it('colours keywords and comments', () => {
  const [line] = pythonLines('return 1  # why');
  expect(line?.map((token) => token.scope)).toEqual(['keyword', '', 'number', '', 'comment']);
});

it('takes code that is not Python', () => {
  expect(text('<<<<<<< HEAD\n%%%')).toBe('<<<<<<< HEAD\n%%%');
});
