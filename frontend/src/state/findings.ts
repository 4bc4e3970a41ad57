/** The list of findings and the one that is open. */

import { computed, effect, signal } from '@preact/signals';
import type { Finding, Outcome, Place } from '../api/types.gen';
import { isMuted } from '../base/mutes';
import { plural, timeUnit, unitNamed, type TimeUnit } from '../base/units';
import { bySize, filtered, grouped, isOwn, sorted, type Grouped } from '../base/ranking';
import { isUnfolded } from './folds';
import { mutes } from './mutes';
import { announce, toast } from './notices';
import { report } from './profile';
import { ranksOf, runFindings, runOutcomes } from './ranks';
import { go, route } from './route';
import { savingsIn } from './settings';
import { narrow } from './viewport';

/** All findings of the profile and of its run, including muted ones. */
const everyFinding = computed<readonly Finding[]>(() => (report.value ? [...runFindings.value, ...report.value.findings] : []));

/** The findings, except muted ones. */
export const findings = computed<readonly Finding[]>(() => everyFinding.value.filter((each) => !isMuted(mutes.value, each)));
export const mutedFindings = computed<readonly Finding[]>(() => everyFinding.value.filter((each) => isMuted(mutes.value, each)));

/** Findings about several ranks come first; they are nobody's code, so that no filter by code hides them. */
export const groups = computed<readonly Grouped<Finding>[]>(() => {
  const { q, sort, group, own } = route.value;
  const kept = findings.value.filter((each) => !own || isOwn(each) || ranksOf(each));
  const found = sorted(filtered(kept, q, ranksOf), sort);
  const ordered = [...found.filter((each) => ranksOf(each)), ...found.filter((each) => !ranksOf(each))];
  if (!folds.value) return grouped(ordered, group);
  const { large, small } = bySize(ordered);
  return grouped([...large, ...small], group);
});

/** Small findings are folded in the initial list; searching, sorting or grouping shows all. */
const folds = computed<boolean>(() => {
  const { q, sort, group } = route.value;
  return q === '' && sort === 'saving' && group === 'none';
});

/** The findings below the fold of the list. */
export const smallOnes = computed<readonly Finding[]>(() => (folds.value ? bySize(listed.value).small : []));

/** The same as one list: movements in it go from group to group. */
export const listed = computed<readonly Finding[]>(() => groups.value.flatMap((group) => group.findings));

/** The open finding. If list and detail are side by side, the first of the list opens by itself. */
export const finding = computed<Finding | null>(() => {
  const named = everyFinding.value.find((each) => each.id === route.value.finding);
  return named ?? (narrow.value ? null : listed.value[0] ?? null);
});

/** The row with the list's one tab stop. */
const cursor = signal('');
export const rowInFocus = computed<string>(() => {
  const ids = listed.value.map((each) => each.id);
  return [cursor.value, finding.value?.id ?? ''].find((id) => ids.includes(id)) ?? ids[0] ?? '';
});

/** True if the small findings are visible: on request, and while one of them is open or in focus. */
export const smallShown = computed<boolean>(() =>
  isUnfolded('small') || smallOnes.value.some(({ id }) => id === rowInFocus.value || id === route.value.finding));

export function setCursor(id: string): void {
  cursor.value = id;
}

const chosenPlace = signal({ finding: '', index: 0 });

export const placeIndex = computed<number>(() =>
  (chosenPlace.value.finding === finding.value?.id ? chosenPlace.value.index : 0));

export const place = computed<Place | null>(() => finding.value?.places[placeIndex.value] ?? null);

export function choosePlace(index: number): void {
  const open = finding.peek();
  if (open?.places[index]) chosenPlace.value = { finding: open.id, index };
}

export const biggestSaving = computed<number>(() =>
  Math.max(0, ...findings.value.map((each) => each.saving?.expected_ns ?? 0)));

/** One unit for all savings of a profile, so that rows can be compared by their numbers alone. */
export const savingUnit = computed<TimeUnit>(() => unitNamed(savingsIn.value) ?? timeUnit(biggestSaving.value));

/** A finding by its id, even a muted one; null if the profile has no such finding. */
export const findingById = (id: string): Finding | null => everyFinding.value.find((each) => each.id === id) ?? null;

export const outcomes = (status: Outcome['status']): readonly Outcome[] =>
  checks.value.filter((outcome) => outcome.status === status);

/** The outcomes of all checks, of the profile or of its run. */
export const checks = computed<readonly Outcome[]>(() => [...report.value?.outcomes ?? [], ...runOutcomes.value]);

/** Late data, such as findings about the run or measured savings, must not replace what is being read. */
function holdOpen(): void {
  let before = { of: '', arrived: everyFinding.peek(), open: '' };
  effect(() => {
    const now = { of: report.value?.path ?? '', arrived: everyFinding.value, open: finding.value?.id ?? '' };
    const pushedAside = now.of === before.of && now.arrived !== before.arrived && before.open && now.open !== before.open;
    if (pushedAside && !route.peek().finding && now.arrived.some(({ id }) => id === before.open)) {
      const { open } = before;
      before = { ...now, open };
      go({ finding: open }, 'replace');
    } else {
      before = now;
    }
  });
}

/** Announces changes of the list, and an address that names a finding outside it. */
export function watchFindings(): void {
  holdOpen();
  effect(() => {
    if (!report.value) return;
    const { q } = route.value;
    announce(`${plural(listed.value.length, 'finding')}${q ? ` match ${q}` : ''}`);
  });
  effect(() => {
    const { finding: id, view } = route.value;
    if (!report.value || !id || everyFinding.value.some((each) => each.id === id)) return;
    toast('That finding is not in this profile.');
    go({ finding: '', view: view === 'source' ? 'findings' : view }, 'replace');
  });
}
