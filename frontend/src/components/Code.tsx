/** Lines of source. */

import type { ComponentChildren } from 'preact';
import type { Line } from '../base/tokens';

export interface Mark {
  line: number;
  endLine: number;
  /** Content of the first line's gutter: the cost. */
  note: string;
  current: boolean;
}

interface CodeProps {
  label: string;
  lines: readonly Line[];
  /** Number of the first line; without it the lines have no numbers. */
  first?: number;
  marks?: readonly Mark[];
  /** One character before each line, as in a diff. */
  sign?: string;
}

export function Code({ label, lines, first, marks = [], sign }: CodeProps) {
  const notes = marks.some((mark) => mark.note);
  return (
    <div class={`code${notes ? ' with-notes' : ''}`} role="region" aria-label={label} tabIndex={0}>
      <div class="code-lines">
        {lines.map((line, index) => (
          <CodeLine line={line} number={first === undefined ? null : first + index} marks={marks} sign={sign ?? ''} />
        ))}
      </div>
    </div>
  );
}

interface CodeLineProps {
  line: Line;
  number: number | null;
  marks: readonly Mark[];
  sign: string;
  /** Replaces the mark's note before the number. */
  gutter?: ComponentChildren;
}

export function CodeLine({ line, number, marks, sign, gutter }: CodeLineProps) {
  const mark = number === null ? undefined
    : marks.find((each) => each.current && holds(each, number)) ?? marks.find((each) => holds(each, number));
  const starts = mark?.line === number;
  return (
    <div class={`code-line${mark ? ' marked' : ''}${mark?.current ? ' current' : ''}`}>
      {gutter ?? (number !== null && <span class="code-note">{starts ? mark?.note : ''}</span>)}
      {number !== null && <span class="code-number">{number}</span>}
      <span class="code-sign" aria-hidden="true">{mark ? '▸' : sign}</span>
      <code class="code-text">
        {mark && <span class="hidden">Matched line: </span>}
        {line.map((token) => (token.scope ? <span class={`hl-${token.scope.split('.')[0] ?? ''}`}>{token.text}</span> : token.text))}
      </code>
    </div>
  );
}

const holds = (mark: Mark, line: number): boolean => mark.line <= line && line <= Math.max(mark.line, mark.endLine);
