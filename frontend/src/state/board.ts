/** The list of all runs: their data, their order, and those selected for a comparison. */

import { signal } from '@preact/signals';
import { getBoard } from '../api/client';
import type { BoardAnswer, BoardRow } from '../api/types.gen';
import { found, ordered, trends, type BoardColumn, type BoardSort } from '../base/board';
import { pause } from '../base/waiting';
import { reloads } from './answers';
import { resource, useResource, type Answered } from './resource';
import { go } from './route';
import { runs } from './runs';

const ALL = 'all';
const ASK_AGAIN_MS = 1500;
const board = resource<BoardAnswer>();

export const boardSort = signal<BoardSort>({ column: 'recorded', descending: true });
export const boardQuery = signal('');
const every = signal(false);

/** The list for a component; requested again while runs are analysed, and when the logdir changes. */
export function useBoard(): Answered<BoardAnswer> {
  const versions = (runs.value?.runs ?? []).map(({ run, profiles }) => `${run} ${profiles.map(({ version }) => version).join(' ')}`).join('\n');
  return useResource(board, ALL, async (given, show) => {
    for (;;) {
      const answer = await getBoard({ analyse: every.peek() ? 'all' : 'few' }, given);
      if (answer.pending === 0) return answer;
      show(answer);
      await pause(ASK_AGAIN_MS, given);
    }
  }, `${reloads.value} ${every.value} ${versions}`);
}

/** Starts the analysis of all runs. */
export function analyseAll(): void {
  every.value = true;
}

export const rowsOf = ({ runs: rows }: BoardAnswer): BoardRow[] => ordered(found(rows, boardQuery.value), boardSort.value);
export const trendsOf = ({ runs: rows }: BoardAnswer): ReturnType<typeof trends> => trends(rows);

/** Names start at their first letter, figures at their largest. */
export function sortBoard(column: BoardColumn): void {
  const { column: before, descending } = boardSort.peek();
  boardSort.value = { column, descending: column === before ? !descending : column !== 'run' && column !== 'device' };
}

const MOST_COMPARED = 2;

/** The runs to compare, in the order of their selection. */
export const chosenRuns = signal<readonly string[]>([]);

/** A third one replaces the first. */
export function chooseRun(run: string): void {
  const before = chosenRuns.peek();
  chosenRuns.value = before.includes(run) ? before.filter((each) => each !== run) : [...before, run].slice(-MOST_COMPARED);
}

/** Compares the older of the selected runs with the newer. */
export function compareChosen(rows: readonly BoardRow[]): void {
  const at = (run: string): number => rows.find((row) => row.run === run)?.recorded_ms ?? 0;
  const [base, candidate] = chosenRuns.peek().toSorted((one, other) => at(one) - at(other));
  if (base === undefined || candidate === undefined) return;
  const side = (run: string) => ({ run, rank: '', span: '', steps: '' });
  go({ view: 'compare', compare: { base: side(base), candidate: side(candidate) } }, 'push');
}
