/** The few blocks of Markdown that rule pages use. */

export type Block =
  | { kind: 'paragraph'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'list'; ordered: boolean; items: string[] };

const FENCE = /^\s*```/;
const BULLET = /^\s*[-*]\s+/;
const NUMBER = /^\s*\d+[.)]\s+/;

export function blocks(markdown: string): Block[] {
  const found: Block[] = [];
  const lines = markdown.split('\n');
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      at += 1;
    } else if (FENCE.test(line)) {
      const end = closingFence(lines, at + 1);
      found.push({ kind: 'code', text: dedent(lines.slice(at + 1, end)) });
      at = end + 1;
    } else {
      const end = paragraphEnd(lines, at);
      found.push(...textBlocks(lines.slice(at, end)));
      at = end;
    }
  }
  return found;
}

function closingFence(lines: readonly string[], from: number): number {
  const end = lines.findIndex((line, index) => index >= from && FENCE.test(line));
  return end < 0 ? lines.length : end;
}

function paragraphEnd(lines: readonly string[], from: number): number {
  const end = lines.findIndex((line, index) => index > from && (line.trim() === '' || FENCE.test(line)));
  return end < 0 ? lines.length : end;
}

/** Lines without a blank one between them: prose, a list, or prose that introduces a list. */
function textBlocks(lines: readonly string[]): Block[] {
  const first = lines.findIndex((line) => BULLET.test(line) || NUMBER.test(line));
  if (first < 0) return [{ kind: 'paragraph', text: joined(lines) }];
  const prose: Block[] = first > 0 ? [{ kind: 'paragraph', text: joined(lines.slice(0, first)) }] : [];
  return [...prose, list(lines.slice(first))];
}

function list(lines: readonly string[]): Block {
  const items: string[] = [];
  for (const line of lines) {
    const text = line.replace(BULLET, '').replace(NUMBER, '').trim();
    if (BULLET.test(line) || NUMBER.test(line)) items.push(text);
    else items.push(`${items.pop() ?? ''} ${text}`.trim());
  }
  return { kind: 'list', ordered: NUMBER.test(lines[0] ?? ''), items };
}

const joined = (lines: readonly string[]): string => lines.map((line) => line.trim()).join(' ');

function dedent(lines: readonly string[]): string {
  const indents = lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const least = indents.length ? Math.min(...indents) : 0;
  return lines.map((line) => line.slice(least)).join('\n');
}
