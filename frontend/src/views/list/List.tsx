/** The findings, ranked, and below them what else was checked. */

import type { Group, Sort } from '../../base/route';
import { isOwn } from '../../base/ranking';
import { plural } from '../../base/units';
import { capital } from '../../base/words';
import { Message } from '../../components/Spans';
import { Select } from '../../components/Select';
import { Button } from '../../components/Button';
import { setGroup, setOwn, setSort, showAll } from '../../state/actions';
import { findings, groups, listed } from '../../state/findings';
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
          {group === 'none' ? rows.map((each) => <Row key={each.id} finding={each} />) : <Groups />}
        </div>
      )}
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

/** Offered where it makes a difference. */
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
