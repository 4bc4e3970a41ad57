/** The findings, ranked, and below them the other checks. */

import type { Finding } from '../../api/types.gen';
import type { Group, Sort } from '../../base/route';
import { isOwn, savedTogether } from '../../base/ranking';
import { plural, share } from '../../base/units';
import { capital } from '../../base/words';
import { Message } from '../../components/Spans';
import { Select } from '../../components/Select';
import { Button } from '../../components/Button';
import { setGroup, setOwn, setSort, showAll } from '../../state/actions';
import { findings, groups, listed, smallOnes, smallShown } from '../../state/findings';
import { unfold } from '../../state/folds';
import { per } from '../../state/profile';
import { route } from '../../state/route';
import { ranksOf } from '../../state/ranks';
import { ruleTitle } from '../../state/rules';
import { narrow } from '../../state/viewport';
import { CannotCheck } from './CannotCheck';
import { Muted } from './Muted';
import { Outcomes } from './Outcomes';
import { Ranks } from './Ranks';
import { Row } from './Row';

const SORTS: readonly { value: Sort; label: string }[] = [
  { value: 'saving', label: 'Saving' },
  { value: 'safe', label: 'Saving, low end' },
  { value: 'cost', label: 'Cost' },
  { value: 'matches', label: 'Matches' },
  { value: 'file', label: 'File' },
];

const GROUPS: readonly { value: Group; label: string }[] = [
  { value: 'none', label: 'None' },
  { value: 'check', label: 'Check' },
  { value: 'file', label: 'File' },
  { value: 'severity', label: 'Severity' },
];

export function List() {
  const { sort, group } = route.value;
  const all = findings.value.length;
  const rows = listed.value;
  const small = smallOnes.value;
  const Title = narrow.value ? 'h1' : 'h2'; // alone on the page, the list is its content
  return (
    <div class="list">
      <div class="list-head">
        <Title class="list-title">{titleText(rows.length, all)}</Title>
        {all > 1 && (
          <div class="list-choices">
            <Select label="Sort" value={sort} options={SORTS} onChange={setSort} />
            <Select label="Groups" value={group} options={GROUPS} onChange={setGroup} />
            <OwnCode />
          </div>
        )}
      </div>
      {rows.length > 0 && (
        <div class="rows" role="listbox" aria-label="Findings">
          {group === 'none' ? rows.slice(0, smallShown.value ? rows.length : rows.length - small.length).map((each) => <Row key={each.id} finding={each} />) : <Groups />}
        </div>
      )}
      {small.length > 0 && <Small findings={small} />}
      {all > 0 && rows.length === 0 && (
        <div class="no-rows">
          <NoneLeft />
          <Button onClick={showAll}>Clear the filter</Button>
        </div>
      )}
      <Ranks />
      <CannotCheck />
      <Muted />
      <Outcomes />
    </div>
  );
}

/** Together they are worth little: one line represents them. */
function Small({ findings: small }: { findings: readonly Finding[] }) {
  const open = smallShown.value;
  const part = savedTogether(small);
  const title = `${plural(small.length, 'small finding')}${small.length > 1 ? ', together' : ':'} ${share(part)} of a ${per.value}`;
  return (
    <button type="button" class="small-findings" aria-expanded={open} onClick={() => unfold('small', !open)}>{open && 'Fold '}{title}</button>
  );
}

function Groups() {
  return (
    <>
      {groups.value.map(({ key, findings: of }) => (
        <div key={key} class="row-group" role="group" aria-label={groupText(key)}>
          <div class="row-group-title" aria-hidden="true"><Message text={groupText(key)} /> <span class="muted">{of.length}</span></div>
          {of.map((each) => <Row key={each.id} finding={each} />)}
        </div>
      ))}
    </>
  );
}

function groupText(key: string): string {
  switch (route.value.group) {
    case 'check': return ruleTitle(key);
    case 'file': return key || 'No source line';
    default: return capital(key);
  }
}

/** Offered only if it makes a difference. */
function OwnCode() {
  const { own } = route.value;
  if (!own && findings.value.every((each) => isOwn(each) || ranksOf(each))) return null;
  return <label class="check"><input type="checkbox" checked={own} onChange={(event) => setOwn(event.currentTarget.checked)} />Only my code</label>;
}

function NoneLeft() {
  const { q, own } = route.value;
  if (q) return <p>No finding{own && ' in your own code'} has all of these words: <b>{q}</b></p>;
  return <p>No finding is in your own code.</p>;
}

function titleText(shown: number, all: number): string {
  if (all === 0) return 'No findings';
  return shown < all ? `${shown} of ${plural(all, 'finding')}` : plural(all, 'finding');
}
