/** A scrolling pane that draws only visible rows. All rows have the same height. */

import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { chunk, useChunk } from './chunk';
import { MissingChunk } from './Later';

interface Props {
  class: string;
  label: string;
  count: number;
  rowHeight: number;
  /** Width of the widest row, as CSS. */
  width?: string;
  /** Drawn above the rows, and always visible. */
  header?: ComponentChildren;
  headerHeight?: number;
  row: (index: number) => ComponentChildren;
  onRange?: (first: number, last: number) => void;
  /** Scrolled to the middle whenever it changes. */
  centre?: number | null;
  /** Whenever it changes, the pane scrolls back to its first row. */
  order?: string;
  role?: 'table' | 'treegrid' | 'region';
  /** Scrolled into view whenever it changes. */
  keep?: number;
  /** The id of the focused row while the pane has the focus. */
  active?: string;
  onKeyDown?: (event: KeyboardEvent) => void;
}

type Library = typeof import('./scrolling');

/** The library is as large as several views together, and only used below the fold. */
export const SCROLLING = chunk<Library>(() => import('./scrolling'));

export function VirtualRows(props: Props) {
  const library = useChunk(SCROLLING);
  if (library === 'missing') return <MissingChunk />;
  return library && <Rows {...props} library={library} />;
}

function Rows({ library, ...props }: Props & { library: Library }) {
  const { count, rowHeight, headerHeight = 0, onRange, centre = null, order = '', role = 'region', keep = -1, active, onKeyDown } = props;
  const pane = useRef<HTMLDivElement>(null);
  const [, redraw] = useReducer((drawn: number) => drawn + 1, 0);
  const options = {
    count,
    getScrollElement: () => pane.current,
    estimateSize: () => rowHeight,
    paddingStart: headerHeight,
    scrollPaddingStart: headerHeight,
    overscan: 12,
    observeElementRect: library.observeElementRect,
    observeElementOffset: library.observeElementOffset,
    scrollToFn: library.elementScroll,
    onChange: () => redraw(undefined),
  };
  const [virtual] = useState(() => new library.Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());

  const rows = virtual.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? 0;
  useEffect(() => onRange?.(first, last), [first, last, onRange]);
  useEffect(() => virtual.scrollToOffset(0), [order, virtual]);
  useEffect(() => {
    if (centre !== null) virtual.scrollToIndex(centre, { align: 'center' });
  }, [centre, count, virtual]);
  const kept = useRef(keep);
  useEffect(() => {
    if (keep >= 0 && keep !== kept.current) virtual.scrollToIndex(keep, { align: 'auto' });
    kept.current = keep;
  }, [keep, virtual]);

  return (
    <div class={`virtual ${props.class}`} ref={pane} role={role} aria-label={props.label} tabIndex={0}
      aria-rowcount={role === 'region' ? undefined : count + 1} aria-activedescendant={active} {...(onKeyDown && { onKeyDown })}>
      <div class="virtual-rows" role="presentation" style={{ height: `${virtual.getTotalSize()}px`, minWidth: props.width ?? '100%' }}>
        {props.header}
        {rows.map((item) => (
          <div class="virtual-row" role="presentation" key={item.index}
            style={{ height: `${rowHeight}px`, transform: `translateY(${item.start}px)` }}>
            {props.row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
