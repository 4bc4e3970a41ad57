/** The user's actions. */

import { signal } from '@preact/signals';
import { postCancel, postRetry } from '../api/client';
import type { Finding, Place } from '../api/types.gen';
import type { Command } from '../base/keys';
import { NOTHING, type Mutes } from '../base/mutes';
import type { Group, Grouping, Sort } from '../base/route';
import type { ProfileKey } from '../base/selection';
import { hasFilter, type View } from '../base/views';
import { faultInfo, gone, reach } from './connection';
import { choosePlace, finding, findings, listed, place, placeIndex, rowInFocus, setCursor } from './findings';
import { wanted } from './focus';
import { unfold } from './folds';
import { reloads } from './answers';
import { moveToHottest } from './lines';
import { changeMutes, loadMutes, mutes } from './mutes';
import { toast } from './notices';
import { moveSpot } from './outline';
import { isOnItsWay, load, loaded, renewed } from './profile';
import { refreshRun } from './ranks';
import { go, route } from './route';
import { loadRules, rules } from './rules';
import { boarding, noteState, refreshRuns, runs, selectedKey } from './runs';
import { narrow } from './viewport';

export const helpOpen = signal(false);
export const settingsOpen = signal(false);

/** Another profile, in the same view; its files are different. */
export function chooseProfile(key: Partial<ProfileKey>): void {
  const { view } = route.peek();
  go({ run: '', worker: '', span: '', file: '', line: '', step: '', op: '', view: view === 'source' ? 'findings' : view, ...key }, 'push');
}

/** The main action of a run, from the list of all. */
export const openRun = (run: string): void =>
  go({ run, worker: '', span: '', file: '', line: '', step: '', op: '', finding: '', q: '', view: 'findings' }, 'push');

/** A rank on its own: its overview, or one of its findings. */
export const openRank = ({ worker, span }: Pick<ProfileKey, 'worker' | 'span'>, id = ''): void =>
  go({ run: selectedKey.peek()?.run ?? '', worker, span, file: '', line: '', step: '', op: '', finding: id, view: id ? 'findings' : 'overview' }, 'push');

export const chooseView = (view: View): void => go({ view }, 'push');

export const setQuery = (q: string): void => go({ q }, 'replace');
export const setSort = (sort: Sort): void => go({ sort }, 'replace');
export const setGroup = (group: Group): void => go({ group }, 'replace');
export const setOwn = (own: boolean): void => go({ own }, 'replace');
/** Removes all filters that hide findings. */
export const showAll = (): void => go({ q: '', own: false }, 'replace');

/** Opens a finding; by keyboard the focus moves to its heading. */
export function openFinding(id: string, withFocus: boolean): void {
  setCursor(id);
  go({ finding: id, view: 'findings' }, 'push');
  if (withFocus) wanted.value = 'heading';
}

/** Back to the list; on a narrow page this closes the detail. */
export function backToList(): void {
  const { view, op } = route.peek();
  if (view === 'operators' && op) openOperator('');
  if (view !== 'findings' && view !== 'source') return;
  if (view === 'source') go({ view: 'findings' }, 'push');
  else if (narrow.peek() && route.peek().finding) go({ finding: '' }, 'push');
  if (listed.peek().length > 0) wanted.value = 'row';
}

/**
 * Moves in the list, or among the marked lines of a file. Side by side the detail follows; on a narrow page it would
 * cover the list.
 */
export function move(by: 1 | -1): void {
  if (route.peek().view === 'source') {
    moveSpot(by);
    return;
  }
  if (route.peek().view !== 'findings') return;
  const ids = listed.peek().map((each) => each.id);
  const at = ids.indexOf(rowInFocus.peek());
  const id = ids[Math.min(ids.length - 1, Math.max(0, at + by))];
  if (id === undefined) return;
  setCursor(id);
  if (!narrow.peek()) go({ finding: id }, 'settle');
  wanted.value = 'row';
}

export const showSource = (at: Pick<Place, 'file' | 'line'>): void =>
  go({ view: 'source', file: at.file, line: String(at.line), finding: finding.peek()?.id ?? '' }, 'push');

/** To the strip of the open finding, else to the view. */
function goToTimeline(): void {
  if (route.peek().view !== 'findings' || !finding.peek()) chooseView('timeline');
  else unfold('evidence', true);
  wanted.value = 'timeline';
}

/** The average step, or the one of this name. */
export const chooseStep = (step: string): void => go({ step }, 'replace');

/** Compares some steps of the current profile with others of it. */
export function compareSteps(base: string, candidate: string): void {
  const key = selectedKey.peek();
  if (!key) return;
  const side = { run: key.run, rank: key.worker, span: key.span };
  go({ view: 'compare', compare: { base: { ...side, steps: base }, candidate: { ...side, steps: candidate } } }, 'push');
}

export const groupOperators = (by: Grouping): void => go({ by, op: '' }, 'push');

/** Opens a row of the operators by its key; an empty one closes it. */
export const openOperator = (op: string): void => go({ op }, 'push');

/** Hides a finding from all lists, or shows it again. */
export function toggleMute({ id, rule }: Pick<Finding, 'id' | 'rule'>): void {
  const known = mutes.peek();
  if (known.rules.includes(rule)) {
    unmute({ findings: [], rules: [rule] });
    return;
  }
  if (known.findings.includes(id)) {
    unmute({ findings: [id], rules: [] });
    return;
  }
  void mute({ findings: [id], rules: [] });
}

function muteOpen(): void {
  const open = finding.peek();
  if (open && route.peek().view === 'findings') toggleMute(open);
}

export const muteRule = (rule: string): void => void mute({ findings: [], rules: [rule] });

export const unmute = (what: Mutes): void => void changeMutes({ mute: NOTHING, unmute: what });

/** The list continues with its next finding; a message says where the muted ones are. */
async function mute(what: Mutes): Promise<void> {
  const ids = listed.peek().map((each) => each.id);
  const at = ids.indexOf(finding.peek()?.id ?? '');
  await changeMutes({ mute: what, unmute: NOTHING });
  const left = listed.peek().map((each) => each.id);
  const next = [...ids.slice(at), ...ids.slice(0, at).toReversed()].find((id) => left.includes(id)) ?? '';
  setCursor(next);
  go({ finding: narrow.peek() ? '' : next }, 'replace');
  wanted.value = 'row';
  toast('Muted. Muted findings are at the end of the list.');
}

function editFilter(): void {
  if (!hasFilter(route.peek().view)) chooseView('findings');
  wanted.value = 'filter';
}

/** The source view, at the open finding's place, or at the first place of all. */
export function showAnySource(): void {
  const at = place.peek() ?? findings.peek().flatMap((each) => each.places)[0];
  if (at) showSource(at);
}

export function movePlace(by: number): void {
  choosePlace(placeIndex.peek() + by);
}

/**
 * Scans the disk again: on TensorBoard's reload, and after the server was gone. A report on the screen stays there; a
 * newer recording is only announced.
 */
export async function revalidate(): Promise<void> {
  const isFirst = runs.peek() === null;
  await refreshRuns();
  if (gone.peek()) return;
  if (rules.peek().size === 0) void loadRules();
  void loadMutes();
  if (!isFirst) reloads.value += 1;
  if (boarding.peek() || isOnItsWay()) return; // the list needs no report; a pending request brings new data
  if (!loaded.peek() || renewed.peek()) loadSelected();
  else void refreshRun();
}

/** Repeats the failed analysis of the selected profile. */
export async function retry(): Promise<void> {
  const key = selectedKey.peek();
  if (!key) return;
  try {
    noteState(key.run, await reach(postRetry(key)));
  } catch (error) {
    const fault = faultInfo(error);
    if (fault) toast(`${fault.message} ${fault.advice}`);
    await refreshRuns();
    return;
  }
  await load(key);
}

/** Stops the analysis of the selected profile; the page then offers to try again. */
export async function cancel(): Promise<void> {
  const key = selectedKey.peek();
  if (!key) return;
  try {
    noteState(key.run, await reach(postCancel(key)));
  } catch (error) {
    const fault = faultInfo(error);
    if (fault) toast(`${fault.message} ${fault.advice}`);
  }
}

/** Loads the selected profile, even if a report of it is on the screen. */
export function loadSelected(): void {
  const key = selectedKey.peek();
  if (key) void load(key);
}

export function perform(command: Command): void {
  switch (command) {
    case 'next': return move(1);
    case 'previous': return move(-1);
    case 'open': if (route.peek().view === 'findings') openFinding(rowInFocus.peek(), true); return;
    case 'back': return backToList();
    case 'filter': return editFilter();
    case 'source': return showAnySource();
    case 'mute': return muteOpen();
    case 'timeline': return goToTimeline();
    case 'hottest': if (route.peek().view === 'source') moveToHottest(); return;
    case 'next-place': return movePlace(1);
    case 'previous-place': return movePlace(-1);
    case 'help': helpOpen.value = true; return;
    default: return chooseView(command);
  }
}
