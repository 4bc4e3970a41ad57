/** The text of a whole file, with the cost of each line. */

import { useCallback, useMemo } from 'preact/hooks';
import { passesIn, type LineCosts } from '../../base/lineCosts';
import { marksAt } from '../../base/places';
import type { Line } from '../../base/tokens';
import { CodeLine, type Mark } from '../../components/Code';
import { Gutter, GutterHead } from '../../components/Gutter';
import { VirtualRows } from '../../components/VirtualRows';
import type { FileOutline } from '../../state/outline';

const LINE_PX = 20;
const GUTTER_PX = 300;
const PASS_PX = 70;
const HEAD_PX = 24;

interface Props { file: FileOutline; lines: readonly Line[]; line: number | null; costs: LineCosts; per: string }

export function WholeFile({ file, lines, line, costs, per }: Props) {
  const columns = useMemo(() => passesIn(costs), [costs]);
  const marks = useMemo(() => marksOf(file, line), [file, line]);
  const widest = useMemo(() => Math.max(...lines.map(characters)), [lines]);
  const row = useCallback((index: number) => (
    <CodeLine line={lines[index] ?? []} number={index + 1} marks={marks} sign="" gutter={<Gutter cost={costs.get(index + 1)} columns={columns} />} />
  ), [lines, marks, costs, columns]);
  return (
    <VirtualRows class="code whole-file" label={`Source of ${file.name}`} count={lines.length} rowHeight={LINE_PX}
      width={`calc(${widest}ch + ${GUTTER_PX + PASS_PX * columns.length}px)`} row={row} centre={line === null ? null : line - 1}
      {...(columns.length > 0 && { header: <GutterHead per={per} columns={columns} />, headerHeight: HEAD_PX })} />
  );
}

const characters = (line: Line): number => line.reduce((length, token) => length + token.text.length, 0);

/** The lines with findings; without one there, also the requested line. */
function marksOf({ spots }: FileOutline, current: number | null): Mark[] {
  const found = spots.flatMap(({ place }) => marksAt(place).map((lines) => ({ ...lines, current: place.line === current, note: '' })));
  const asked = current === null || spots.some(({ place }) => place.line === current) ? []
    : [{ line: current, endLine: current, current: true, note: '' }];
  return [...asked, ...found];
}
