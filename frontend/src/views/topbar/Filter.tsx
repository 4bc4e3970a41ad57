/** The filter of the list. */

import { useRef } from 'preact/hooks';
import { Icon } from '../../components/Icon';
import { setQuery } from '../../state/actions';
import { useWantedFocus } from '../../state/focus';
import { route } from '../../state/route';

export function Filter() {
  const input = useRef<HTMLInputElement>(null);
  useWantedFocus('filter', input);
  return (
    <label class="filter" title="Words of the message, the check, the file or the severity; all must occur">
      <Icon name="search" />
      <span class="hidden">Filter findings</span>
      <input ref={input} type="search" placeholder="Filter (/)" value={route.value.q} autocomplete="off" spellcheck={false}
        onInput={(event) => setQuery(event.currentTarget.value)} />
    </label>
  );
}
