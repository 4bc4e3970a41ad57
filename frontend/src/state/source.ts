/** Source files of the selected profile. */

import { getSource } from '../api/client';
import type { SourceAnswer } from '../api/types.gen';
import { NO_KEY } from '../base/selection';
import { plainLines, type Line } from '../base/tokens';
import { shownVersion } from './answers';
import { highlight } from './highlight';
import { resource, useResource, type Answered } from './resource';
import { selectedKey } from './runs';

export type SourceState =
  | Exclude<Answered<never>, { kind: 'ready' }>
  | { kind: 'missing'; reason: string }
  | { kind: 'ready'; answer: SourceAnswer; lines: readonly Line[] };

const KEPT_FILES = 24;
const files = resource<SourceAnswer>({ keep: KEPT_FILES, once: true });
const coloured = resource<readonly Line[]>({ keep: KEPT_FILES, once: true });

/** A file of the profile on the screen, for a component: plain once it is loaded, in colour a moment later. */
export function useSource(file: string): SourceState {
  const key = selectedKey.value;
  const of = key ? `${shownVersion()} ${file}` : '';
  const source = useResource(files, of, (given) => getSource({ ...(key ?? NO_KEY), file }, given));
  const text = source.kind === 'ready' && source.answer.available ? source.answer.lines : null;
  const colours = useResource(coloured, text ? of : '', async () => linesOf(text ?? []));
  if (source.kind !== 'ready') return source;
  const { answer } = source;
  if (!answer.available) return { kind: 'missing', reason: answer.reason ?? '' };
  return { kind: 'ready', answer, lines: colours.kind === 'ready' ? colours.answer : plainLines(answer.lines) };
}

async function linesOf(text: readonly string[]): Promise<readonly Line[]> {
  const lines = await highlight(text.join('\n'));
  return lines?.length === text.length ? lines : plainLines(text);
}
