/** The findings by file and line, for the source view. */

import { computed } from '@preact/signals';
import type { FileCost, Finding, Place } from '../api/types.gen';
import { fileName, shortNames } from '../base/places';
import { sourceFiles, useAnswer } from './answers';
import { findings, place as openPlace } from './findings';
import { go, route } from './route';

export interface Spot { finding: Finding; place: Place }
export interface FileOutline { file: string; name: string; spots: readonly Spot[] }

/** Files with findings, most findings first; within a file by line. */
export const outline = computed<readonly FileOutline[]>(() => {
  const spots = findings.value.flatMap((finding) => finding.places.map((place) => ({ finding, place })));
  const names = shortNames(spots.map((spot) => spot.place.file));
  return [...names]
    .map(([file, name]) => ({
      file, name,
      spots: spots.filter((spot) => spot.place.file === file).toSorted((a, b) => a.place.line - b.place.line),
    }))
    .toSorted((a, b) => b.spots.length - a.spots.length);
});

/** The file of the source view: the address's, which need not have findings, else that of the open finding, else the first with any. */
export const openFile = computed<FileOutline | null>(() => {
  const file = route.value.file || (openPlace.value?.file ?? '');
  const known = outline.value.find((each) => each.file === file);
  return known ?? (file ? { file, name: fileName(file), spots: [] } : outline.value[0] ?? null);
});

export const openLine = computed<number | null>(() => {
  const line = Number(route.value.line);
  if (Number.isInteger(line) && line > 0) return line;
  const [file, open] = [openFile.value, openPlace.value];
  return (open && open.file === file?.file ? open.line : file?.spots[0]?.place.line) ?? null;
});

export const showSpot = ({ finding, place }: Spot): void =>
  go({ view: 'source', file: place.file, line: String(place.line), finding: finding.id }, 'replace');

/** A file without findings: `time` is that of its costliest line, in ns per step. */
export type OtherFile = FileCost & { name: string; time: number };

/** For a component: the files without findings in which calls were placed, the costliest first. */
export function useOtherFiles(): OtherFile[] {
  const files = useAnswer(sourceFiles);
  const [found, steps] = files.kind === 'ready' ? [files.answer.files, Math.max(1, files.answer.steps)] : [[], 1];
  const names = shortNames(found.map(({ file }) => file));
  return found.filter(({ file }) => !outline.value.some((each) => each.file === file)).map((each) => ({ ...each, name: names.get(each.file) ?? each.file, time: each.total_ns / steps }));
}

/** A file at a line, whether or not it has findings; the open finding stays open. */
export const showFile = (file: string, line: number): void => go({ view: 'source', file, line: String(line) }, 'replace');

/** To the next line of the open file that has a finding. */
export function moveSpot(by: 1 | -1): void {
  const at = openLine.peek() ?? 0;
  const spots = openFile.peek()?.spots ?? [];
  const spot = by > 0 ? spots.find((each) => each.place.line > at) : spots.findLast((each) => each.place.line < at);
  if (spot) showSpot(spot);
}
