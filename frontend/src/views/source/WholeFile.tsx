/** All lines of a file; only those in sight are drawn. */

import { useCallback, useMemo } from 'preact/hooks';
import type { Line } from '../../base/tokens';
import { nanoseconds, plural } from '../../base/units';
import { CodeLine, type Mark } from '../../components/Code';
import { VirtualRows } from '../../components/VirtualRows';
import type { FileOutline } from '../../state/outline';
import { per } from '../../state/profile';

const LINE_PX = 20;
const GUTTER_PX = 200;

interface Props { file: FileOutline; lines: readonly Line[]; line: number | null }

export function WholeFile({ file, lines, line }: Props) {
  const marks = useMemo(() => marksOf(file, line), [file, line]);
  const widest = useMemo(() => Math.max(...lines.map(characters)), [lines]);
  const row = useCallback((index: number) => (
    <CodeLine line={lines[index] ?? []} number={index + 1} marks={marks} sign="" />
  ), [lines, marks]);
  return (
    <VirtualRows class="code with-notes whole-file" label={`Source of ${file.name}`} count={lines.length} rowHeight={LINE_PX}
      width={`calc(${widest}ch + ${GUTTER_PX}px)`} row={row} centre={line === null ? null : line - 1} />
  );
}

const characters = (line: Line): number => line.reduce((length, token) => length + token.text.length, 0);

/** The lines with findings; without one there, the line that was asked for as well. */
function marksOf({ spots }: FileOutline, current: number | null): Mark[] {
  const asked = current === null || spots.some(({ place }) => place.line === current) ? []
    : [{ line: current, endLine: current, current: true, note: '' }];
  return [...asked, ...spotMarks(spots, current)];
}

function spotMarks(spots: FileOutline['spots'], current: number | null): Mark[] {
  return spots.map(({ place }) => {
    const here = spots.filter((other) => other.place.line === place.line);
    return {
      line: place.line, endLine: place.end_line, current: place.line === current,
      note: here.length > 1 ? plural(here.length, 'finding') : `${nanoseconds(place.duration_ns)}/${per.value}`,
    };
  });
}
