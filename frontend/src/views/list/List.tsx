/** The findings, ranked, and below them what else was checked. */

import { sortFrom } from '../../base/route';
import { plural } from '../../base/units';
import { Select } from '../../components/Select';
import { Button } from '../../components/Button';
import { setQuery, setSort } from '../../state/actions';
import { findings, listed } from '../../state/findings';
import { route } from '../../state/route';
import { narrow } from '../../state/viewport';
import { CannotCheck } from './CannotCheck';
import { Muted } from './Muted';
import { Outcomes } from './Outcomes';
import { Ranks } from './Ranks';
import { Row } from './Row';

const SORTS = [
  { value: 'saving', label: 'Saving' },
  { value: 'safe', label: 'Saving, low end' },
  { value: 'cost', label: 'Cost' },
  { value: 'matches', label: 'Matches' },
  { value: 'file', label: 'File' },
];

export function List() {
  const { q, sort } = route.value;
  const all = findings.value.length;
  const rows = listed.value;
  const Title = narrow.value ? 'h1' : 'h2'; // alone on the page, the list is its content
  return (
    <div class="list">
      <div class="list-head">
        <Title class="list-title">{titleText(rows.length, all)}</Title>
        {all > 1 && <Select label="Sort" value={sort} options={SORTS} onChange={(value) => setSort(sortFrom(value))} />}
      </div>
      {rows.length > 0 && (
        <div class="rows" role="listbox" aria-label="Findings">
          {rows.map((each) => <Row key={each.id} finding={each} />)}
        </div>
      )}
      {all > 0 && rows.length === 0 && (
        <div class="no-rows">
          <p>No finding has all of these words: <b>{q}</b></p>
          <Button onClick={() => setQuery('')}>Clear the filter</Button>
        </div>
      )}
      <Ranks />
      <CannotCheck />
      <Muted />
      <Outcomes />
    </div>
  );
}

function titleText(shown: number, all: number): string {
  if (all === 0) return 'No findings';
  return shown < all ? `${shown} of ${plural(all, 'finding')}` : plural(all, 'finding');
}
