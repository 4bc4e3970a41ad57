/** Costs of lines of a source file, for the gutter of the source view. */

import { computed, signal } from '@preact/signals';
import { getLines } from '../api/client';
import type { LineColumns } from '../api/types.gen';
import { costsOfCalls, costsOfPlaces, nextHottest, type LineCosts } from '../base/lineCosts';
import { NO_KEY } from '../base/selection';
import { nanoseconds, plural } from '../base/units';
import { shownVersion } from './answers';
import { finding } from './findings';
import { openFile, openLine } from './outline';
import { per, stepNs } from './profile';
import { resource, useResource } from './resource';
import { go, route } from './route';
import { selectedKey } from './runs';

/** The costs in the gutter: those of all calls, or those of the open finding. */
export const gutter = signal<'calls' | 'finding'>('calls');

const MOST_NAMED = 3;

interface Said { calls: LineCosts; missing: string; unknown: string }

const said = resource<Said>({ keep: 24, once: true });

/** Identifies the file on the screen, in this recording of it. */
const wanted = computed<string>(() => {
  const file = route.value.view === 'source' ? openFile.value?.file : undefined;
  return file && shownVersion() ? `${shownVersion()} ${file}` : '';
});

/** Costs of the lines of the open file; null until the server has answered. */
const calls = computed<Said | null>(() => {
  const failure = said.failures.value.get(wanted.value);
  return said.answers.value.get(wanted.value) ?? (failure ? { calls: new Map(), missing: failure.message, unknown: '' } : null);
});

/** The costs of one finding on the lines of the open file; null if all calls are shown. */
const ofFinding = computed<LineCosts | null>(() => {
  if (gutter.value === 'calls' || !finding.value) return null;
  return costsOfPlaces(finding.value.places, openFile.value?.file ?? '', per.value, stepNs.value);
});

export const lineCosts = computed<LineCosts>(() => ofFinding.value ?? calls.value?.calls ?? new Map());

export const missingCosts = computed<string>(() => {
  if (ofFinding.value) return ofFinding.value.size > 0 ? '' : 'The open finding has no line in this file.';
  return calls.value?.missing ?? '';
});

/** The time of functions in the open file whose lines are not known; empty without any. */
export const unknownLines = computed<string>(() => (ofFinding.value ? '' : calls.value?.unknown ?? ''));

/** Requests the costs of the open file, for a component. */
export function useLineCosts(): void {
  const [key, file] = [selectedKey.value, openFile.value?.file ?? ''];
  useResource(said, wanted.value, async (given) => {
    const { costs } = await getLines({ ...(key ?? NO_KEY), file }, given);
    return { calls: costs ? costsOfCalls(costs, per.peek()) : new Map(), missing: missingText(costs?.left_out ?? null), unknown: unknownText(costs) };
  });
}

function missingText(leftOut: readonly string[] | null): string {
  if (leftOut === null) return 'No recorded call could be placed on a line of this file.';
  if (leftOut.length === 0) return '';
  return `Too many calls to place them all: lines in ${leftOut.map((name) => `\`${name}\``).join(', ')} have no costs.`;
}

function unknownText(costs: LineColumns | null): string {
  if (!costs || costs.functions.length === 0) return '';
  const named = costs.functions.slice(0, MOST_NAMED).map((name, at) => `\`${name}\` ${nanoseconds((costs.functions_ns[at] ?? 0) / costs.steps)}`);
  const more = costs.functions.length - named.length;
  return `Per ${per.peek()}, on lines that are not known: ${named.join(', ')}${more > 0 ? ` and ${plural(more, 'further function')}` : ''}.`;
}

/** To the most expensive line of the open file, then to the next. */
export function moveToHottest(): void {
  const line = nextHottest(lineCosts.peek(), openLine.peek());
  const file = openFile.peek()?.file;
  if (line !== null && file !== undefined) go({ file, line: String(line) }, 'replace');
}
