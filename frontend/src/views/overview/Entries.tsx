/** The entries of the account as a table: largest first, small ones behind one line, and their sum. */

import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { LedgerEntry, LedgerFunction, LedgerOwner } from '../../api/ledger';
import { communicationText, folded, isBusy, knownByText, knownText, limitText, reasonText, type Account, type Row } from '../../base/ledger';
import { actionOf } from '../../base/actionTitles';
import { columnShare, columnTime, count, moment, nanoseconds, partShare, plural, share } from '../../base/units';
import { capital, replayedMark } from '../../base/words';
import { Button } from '../../components/Button';
import { ShareBar } from '../../components/ShareBar';
import { Message } from '../../components/Spans';
import { Swatch } from '../../components/StackedBar';
import { openFinding, showSource } from '../../state/actions';
import { findingById } from '../../state/findings';
import { addCss } from '../../state/host';
import { go } from '../../state/route';
import { showPiece } from '../../state/timeline';
import css from '../../styles/ledger.css?inline';

addCss(css);

interface Props { account: Account<LedgerEntry>; what: string; time: string }
type EntryRow = Row<LedgerEntry>;

export function Entries({ account, what, time }: Props) {
  const [all, setAll] = useState(false);
  const { listed, small } = folded(account);
  const rows = all ? [...listed, ...small] : listed;
  const rest = small.reduce((sum, { ns }) => sum + ns, 0);
  return (
    <div class="ledger" role="table" aria-label={`Entries of ${what}`}>
      <div role="rowgroup">
        <div class="ledger-row ledger-head" role="row">
          {['Share', time, 'What', 'Whose time', 'How near its limit', 'What to do'].map((label) => <span role="columnheader">{label}</span>)}
        </div>
      </div>
      <div role="rowgroup">
        {rows.map((row) => <Entry key={row.entry.id} row={row} />)}
        {small.length > 0 && (
          <Line part={rest / account.whole} ns={rest} name={(
            <Expander open={all} onToggle={() => setAll(!all)}>{plural(small.length, 'smaller entry', 'smaller entries')}{all && ', listed above'}</Expander>
          )}>below 1 % each</Line>
        )}
      </div>
      <div role="rowgroup">
        <Line part={1} ns={account.whole} name={<b>Sum</b>}><span title={`${count(account.whole)} ns`}>{capital(what)}</span></Line>
      </div>
    </div>
  );
}

/** A line beside the entries: the folded ones, the sum. */
const Line = ({ part, ns, name, children }: { part: number; ns: number; name: ComponentChildren; children: ComponentChildren }) => (
  <div class="ledger-row ledger-line" role="row">
    <span role="cell" class="number">{columnShare(part)}</span>
    <span role="cell" class="number">{columnTime(ns)}</span>
    <span role="rowheader">{name}</span>
    <span role="cell" aria-colspan={3} class="muted ledger-rest">{children}</span>
  </div>
);

const Expander = ({ open, controls, onToggle, children }: { open: boolean; controls?: string; onToggle: () => void; children: ComponentChildren }) => (
  <button type="button" class="ledger-open" aria-expanded={open} aria-controls={open ? controls : undefined} onClick={onToggle}>
    <span class="ledger-sign" aria-hidden="true">{open ? '▾' : '▸'}</span><span>{children}</span>
  </button>
);

function Entry({ row }: { row: EntryRow }) {
  const { entry, ns, share: part } = row;
  const id = useId();
  const [open, setOpen] = useState(false);
  return (
    <>
      <div class="ledger-row" role="row">
        <span role="cell" class="ledger-share"><ShareBar share={part} text={columnShare(part)} /></span>
        <span role="cell" class="number ledger-time">{columnTime(ns)}</span>
        <span role="rowheader" class="ledger-what">
          <Expander open={open} controls={id} onToggle={() => setOpen(!open)}><Swatch colour={entry.colour} /><Message text={entry.title} /></Expander>
        </span>
        <span role="cell" class="ledger-owner"><Owner entry={entry} /></span>
        <span role="cell" class="ledger-limit"><Limit row={row} /></span>
        <span role="cell" class="ledger-advice"><ToDo entry={entry} /></span>
      </div>
      {open && <div class="ledger-row ledger-more" role="row" id={id}><div role="cell" aria-colspan={6}><More row={row} /></div></div>}
    </>
  );
}

/** Place and work of the first owner; its other names are in the part that opens below. */
function Owner({ entry }: { entry: LedgerEntry }) {
  const { owner, ns_total: total } = entry;
  const { place = '', work = '', file, line } = owner;
  const part = partText(owner, total);
  if (!place && !work) return <span class="muted">not recorded</span>;
  return (
    <>
      {place && <span class="ledger-place">{file && line ? <button type="button" class="ledger-link" title={`${file}:${line}`} onClick={() => showSource({ file, line })}>{shortPlace(owner)}</button> : shortPlace(owner)}</span>}
      {work && <code class="ledger-name" title={work}>{work}</code>}
      {part && <span class="ledger-text muted">{part}</span>}
    </>
  );
}

/** The place without the file's folders. */
const shortPlace = ({ place = '', file }: LedgerOwner): string => (file ? place.replace(file, file.split(/[\\/]/).pop() ?? file) : place);

const ALL = 0.995; // rounds to 100 %

/** One owner's part of an entry, if that is not all of it. */
const partText = ({ ns = 0 }: LedgerOwner, total: number): string => (ns > 0 && ns / total < ALL ? `${partShare(ns / total)} of it` : '');

function Limit({ row }: { row: EntryRow }) {
  const { limit, communication } = row.entry;
  const known = limit ? knownText(limit) : '';
  const lines = [limit && limitText(limit), communication && communicationText(communication, row)].filter(Boolean);
  if (lines.length === 0) return <None />;
  return <>{lines.map((line) => <span class="ledger-text">{line}</span>)}{known && <span class="ledger-text muted">{known}</span>}</>;
}

/** The finding, else advice, else the reason why there is nothing to do. */
function ToDo({ entry }: { entry: LedgerEntry }) {
  const { finding_id: id, advice } = entry;
  const finding = id ? findingById(id) : null;
  const reason = reasonText(entry);
  if (finding) return <button type="button" class="ledger-link" onClick={() => openFinding(finding.id, true)}><Message text={actionOf(finding)} /></button>;
  if (!advice && !reason) return <None />;
  return <>{advice && <span class="ledger-text"><Message text={advice} /></span>}{reason && <span class="ledger-text muted"><Message text={reason} /></span>}</>;
}

const None = () => <span class="muted ledger-none">–</span>;

/** Every name in full, the evidence for the cause, and its longest pieces on the timeline. */
function More({ row: { entry, ns } }: { row: EntryRow }) {
  const { owner, owners = [], evidence = [], hidden_ns: hidden = 0, ns_total: total, gaps = [] } = entry;
  const knownBy = knownByText(owner.known_by ?? 'none');
  return (
    <div class="ledger-facts">
      <p><Button kind="quiet" onClick={() => go({ view: 'flame', entry: entry.id, finding: '' }, 'push')}>Show in the flame graph</Button></p>
      {evidence.length > 0 && (
        <div>
          <p class="ledger-name-of">{evidence.length === 1 ? 'The longest' : `The ${evidence.length} longest`} of {plural(entry.count, 'piece')}, on the timeline</p>
          <ul>
            {evidence.map((piece) => (
              <li>
                <Button kind="quiet" onClick={() => showPiece(piece)}>{nanoseconds(piece.end_ns - piece.start_ns)} at {moment(piece.start_ns)}</Button>
                <span class="ledger-full">{piece.event}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <dl>
        <Fact name={isBusy(entry) ? 'Kernel' : 'Waited for'} text={owner.kernel} />
        <Fact name="Operator" text={owner.operator && owner.operator + replayedMark(owner.replayed)} />
        <Fact name="Function" text={placed(owner.library)} />
        <Fact name="Your function" text={placed(owner.own)} />
        <Fact name="Annotation" text={owner.mark} />
        <Fact name="Thread" text={owner.thread} />
        <Fact name="Between" text={owner.neighbours} />
        <Fact name={entry.proof_text ? 'Proof' : 'Confidence'} words text={entry.proof_text ? `${capital(entry.proof_text)}; confidence ${entry.confidence}` : capital(entry.confidence)} />
        <Fact name="Owner known by" words text={knownBy && capital(knownBy)} />
        {owners.slice(1).map((each) => <Fact name="Also" text={`${nameOf(each)}${each.ns ? `, ${partText(each, total)}` : ''}`} />)}
        {gaps.length > 0 && total > 0 && <Fact name="At least" words text={floorText(entry, ns / total)} />}
        {hidden > 0 && total > 0 && <Fact name="Hidden" words text={`${nanoseconds(Math.round((hidden / total) * ns))} more runs behind other work (${share(hidden / (hidden + total))} of all)`} />}
      </dl>
    </div>
  );
}

/** The floor of an entry, and the reasons for the rest: at the scale of the row's step. */
const floorText = ({ floor_ns: floor = 0, floor_known_ns: known = 0, gaps = [] }: LedgerEntry, scale: number): string =>
  [known > 0 ? `${nanoseconds(Math.round(floor * scale))} on this machine` : '', ...gaps.map(({ ns, text }) => `${nanoseconds(Math.round(ns * scale))} ${text}`)].filter(Boolean).join('; ');

const nameOf = ({ place = '', work = '' }: LedgerOwner): string => [place, work].filter(Boolean).join(' · ') || 'not recorded';

const placed = (place: LedgerFunction | null | undefined): string => (place ? `${place.function} in ${place.file}${place.line ? `:${place.line}` : ''}` : '');

/** Recorded names are code, our own words are text. */
const Fact = ({ name, text, words = false }: { name: string; text: string | null | undefined; words?: boolean }) =>
  (text ? <><dt>{name}</dt><dd class={words ? '' : 'ledger-full'}>{text}</dd></> : null);
