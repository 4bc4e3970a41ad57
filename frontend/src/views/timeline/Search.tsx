/** Finds events by name: Enter goes to the next, Shift and Enter to the previous one. */

import { Button } from '../../components/Button';
import { Icon } from '../../components/Icon';
import { findEvent, searchSaid, searchText, typeSearch } from '../../state/timelineSearch';

interface Props {
  /** Start of the window, in ns. */
  from: () => number;
}

export const Search = ({ from }: Props) => (
  <form class="timeline-search" role="search" onSubmit={(event) => { event.preventDefault(); void findEvent('next', from()); }}>
    <label class="filter" title="Part of an event’s name">
      <Icon name="search" />
      <span class="hidden">Find events</span>
      <input type="search" placeholder="Find events" value={searchText.value} autocomplete="off" spellcheck={false} maxLength={200}
        onInput={(event) => typeSearch(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !event.shiftKey) return;
          event.preventDefault();
          void findEvent('previous', from());
        }} />
    </label>
    {searchText.value && (
      <>
        <Button onClick={() => void findEvent('previous', from())}>Previous</Button>
        <Button onClick={() => void findEvent('next', from())}>Next</Button>
        <span class="muted" role="status">{searchSaid.value}</span>
      </>
    )}
  </form>
);
