/** All runs side by side: the slow ones, what to do first there, and those that got slower. */

import { useRef } from 'preact/hooks';
import type { BoardAnswer, BoardRow } from '../../api/types.gen';
import { isWorse, loggedText, savedShare, sparkPoints, trendText, type BoardColumn, type Trend } from '../../base/board';
import { columnShare, columnTime, plural, share } from '../../base/units';
import { Button } from '../../components/Button';
import { Failure } from '../../components/Failure';
import { Icon } from '../../components/Icon';
import { Skeleton } from '../../components/Progress';
import { Message } from '../../components/Spans';
import { VirtualRows } from '../../components/VirtualRows';
import { openRun } from '../../state/actions';
import { analyseAll, boardQuery, boardSort, chooseRun, chosenRuns, compareChosen, rowsOf, sortBoard, trendsOf, useBoard } from '../../state/board';
import { useWantedFocus } from '../../state/focus';
import { addCss } from '../../state/host';
import { narrow } from '../../state/viewport';
import css from '../../styles/runs.css?inline';

addCss(css);

const ROW_PX = 44;
const NARROW_ROW_PX = 96; // three lines, each with less beside it
const LEAST_PX = 1000;

export function Runs() {
  const board = useBoard();
  if (board.kind === 'failed') return <main class="table-page pad"><h1 class="hidden">All runs</h1><Failure error={board.error} onRetry={board.again} /></main>;
  return (
    <main class="table-page" aria-labelledby="page-title">
      <div class="table-head">
        <h1 id="page-title">All runs</h1>
        <Search />
        {board.kind === 'ready' && <Doing answer={board.answer} />}
      </div>
      {board.kind === 'ready' ? <Table answer={board.answer} /> : <Skeleton rows={8} />}
    </main>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  useWantedFocus('filter', input);
  return (
    <label class="filter" title="Part of a name, a device, an action or of what was logged">
      <Icon name="search" />
      <span class="hidden">Search runs</span>
      <input ref={input} type="search" placeholder="Search (/)" value={boardQuery.value} autocomplete="off" spellcheck={false}
        onInput={(event) => { boardQuery.value = event.currentTarget.value; }} />
    </label>
  );
}

/** Analysed runs, other runs, and the actions for the selected ones. */
function Doing({ answer }: { answer: BoardAnswer }) {
  const chosen = chosenRuns.value.length;
  return (
    <>
      {chosen > 0 && (chosen === 2 ? <Button kind="primary" onClick={() => compareChosen(answer.runs)}>Compare the two runs</Button>
        : <span class="muted">Choose one more run to compare</span>)}
      <span class="muted table-note" role="status">
        {plural(answer.runs.length, 'run')}{answer.pending > 0 && `; ${answer.pending} being analysed`}{answer.unasked > 0 && `; ${answer.unasked} not analysed`}
      </span>
      {answer.unasked > 0 && <Button onClick={analyseAll}>Analyse all</Button>}
    </>
  );
}

type Cell = 'compare' | 'run' | 'recorded' | 'device' | 'step' | 'trend' | 'saving' | 'action' | 'logged';

const COLUMNS: readonly { id: Cell; column: BoardColumn | null; label: string; width: string; number?: boolean }[] = [
  { id: 'compare', column: null, label: 'Compare', width: '64px' },
  { id: 'run', column: 'run', label: 'Run', width: 'minmax(200px, 1.5fr)' },
  { id: 'recorded', column: 'recorded', label: 'Recorded', width: '150px' },
  { id: 'device', column: 'device', label: 'Device', width: 'minmax(100px, 1fr)' },
  { id: 'step', column: 'step', label: 'Step', width: '72px', number: true },
  { id: 'trend', column: null, label: 'Trend', width: '136px' },
  { id: 'saving', column: 'saving', label: 'Recoverable', width: '128px', number: true },
  { id: 'action', column: null, label: 'Do first', width: 'minmax(160px, 1.5fr)' },
  { id: 'logged', column: null, label: 'Logged', width: 'minmax(120px, 1fr)' },
];

/** A column in which every run would have a dash is not shown. */
const shown = (rows: readonly BoardRow[], trends: ReadonlyMap<string, Trend>): readonly (typeof COLUMNS)[number][] =>
  COLUMNS.filter(({ id }) => (id === 'trend' ? trends.size > 0 : id !== 'logged' || rows.some((row) => loggedText(row) !== '')));

function Table({ answer }: { answer: BoardAnswer }) {
  const rows = rowsOf(answer);
  const trends = trendsOf(answer);
  const columns = shown(answer.runs, trends);
  const grid = { '--columns': columns.map(({ width }) => width).join(' ') };
  if (rows.length === 0) return <p class="pad muted">No run has all of these words.</p>;
  return (
    <VirtualRows class="server-table board" role="table" label="Runs" count={rows.length} rowHeight={narrow.value ? NARROW_ROW_PX : ROW_PX}
      headerHeight={ROW_PX} width={narrow.value ? '100%' : `${LEAST_PX}px`}
      header={<Header columns={columns} grid={grid} />} order={JSON.stringify([boardSort.value, boardQuery.value])}
      row={(index) => { const row = rows[index]; return row && <Row row={row} number={index + 2} trend={trends.get(row.run)} columns={columns} grid={grid} />; }} />
  );
}

interface Grid { columns: ReturnType<typeof shown>; grid: Record<string, string> }

const Header = ({ columns, grid }: Grid) => (
  <div class="server-row server-head" role="row" aria-rowindex={1} style={grid}>
    {columns.map(({ id, column, label, number }) => {
      const { column: by, descending } = boardSort.value;
      const sorted = column !== null && column === by;
      return (
        <span role="columnheader" class={`board-${id}${number ? ' number' : ''}`} aria-sort={sorted ? (descending ? 'descending' : 'ascending') : undefined}>
          {column === null ? label
            : <button type="button" class="sort" onClick={() => sortBoard(column)}>{label}<span class="sort-sign" aria-hidden="true">{sorted ? (descending ? '▾' : '▴') : ''}</span></button>}
        </span>
      );
    })}
  </div>
);

const STATES: Record<BoardRow['state'], string> = { queued: 'not analysed yet', reading: 'being read', analysing: 'being analysed', done: '', error: 'could not be read' };

function Row({ row, number, trend, columns, grid }: Grid & { row: BoardRow; number: number; trend: Trend | undefined }) {
  const name = row.run || '.';
  const has = (cell: Cell): boolean => columns.some(({ id }) => id === cell);
  const worse = trend !== undefined && isWorse(trend);
  const part = savedShare(row);
  const unknown = row.known ? '' : STATES[row.state];
  return (
    <div class={`server-row${worse ? ' worse' : ''}`} role="row" aria-rowindex={number} style={grid} onClick={() => openRun(row.run)}>
      <span role="cell" class="board-compare">
        <input type="checkbox" aria-label={`Compare ${name}`} checked={chosenRuns.value.includes(row.run)} onClick={(event) => event.stopPropagation()} onChange={() => chooseRun(row.run)} />
      </span>
      <span role="cell" class="board-run"><button type="button" class="server-open" title={name}>{name}</button></span>
      <span role="cell" class="board-recorded">{row.recorded_ms === null ? '–' : new Date(row.recorded_ms).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })}</span>
      <span role="cell" class="board-device" title={row.device}>{row.device || '–'}</span>
      <span role="cell" class="board-step number">{row.step_ns === null ? '–' : columnTime(row.step_ns)}</span>
      {has('trend') && <span role="cell" class="board-trend">{trend ? <Spark trend={trend} worse={worse} /> : '–'}</span>}
      <span role="cell" class="board-saving number">{!row.saving_ns ? '–' : <>{part !== null && <b>{columnShare(part)}</b>} <span class="muted">{columnTime(row.saving_ns)}</span></>}</span>
      <span role="cell" class="board-action"><Unread row={row} />{unknown ? <span class="muted">{row.state !== 'error' && unknown}</span> : row.action ? <Message text={row.action} /> : <span class="muted">No finding</span>}</span>
      {has('logged') && <span role="cell" class="board-logged" title={loggedText(row)}>{loggedText(row) || '–'}</span>}
    </div>
  );
}

/** A sign and words for a run of which something could not be read, with the reason on hover. */
const Unread = ({ row: { state, known, problem } }: { row: BoardRow }) => (state === 'error' && !known ? <span class="board-unread error" title={problem}>✕ could not be read</span>
  : problem ? <span class="board-unread" title={problem}>▲ not all could be read</span> : null);

const [WIDE, HIGH] = [64, 20];

const Spark = ({ trend, worse }: { trend: Trend; worse: boolean }) => (
  <span class="spark" title={trendText(trend)}>
    <svg viewBox={`0 0 ${WIDE} ${HIGH}`} width={WIDE} height={HIGH} role="img" aria-label={trendText(trend)}><polyline points={sparkPoints(trend.steps, WIDE, HIGH)} /></svg>
    {trend.change !== null && <span class={worse ? 'slower' : 'muted'}>{worse && '▲ '}{trend.change > 0 ? '+' : '−'}{share(Math.abs(trend.change))}</span>}
  </span>
);
