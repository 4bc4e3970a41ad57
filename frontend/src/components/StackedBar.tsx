/** A whole and its parts, with the parts named below. */

interface Piece {
  colour: string;
  label: string;
  share: number;
  text: string;
  /** Shows only the findings about it, or all again; absent if there are none. */
  filter?: { isOn: boolean; hint: string; onToggle: () => void };
}

/** The bar alone: decoration, the words are beside it. */
export const Bar = ({ parts, tall = false }: { parts: readonly Piece[]; tall?: boolean }) => (
  <div class={`stacked-bar${tall ? ' tall' : ''}`} aria-hidden="true">
    {parts.map(({ colour, share, label: name, text }) => (
      <span class={`stacked-part part-${colour}`} style={{ flexGrow: share }} title={`${name}: ${text}`} />
    ))}
  </div>
);

export const Swatch = ({ colour }: { colour: string }) => <span class={`swatch part-${colour}`} aria-hidden="true" />;

interface Props { label: string; parts: readonly Piece[] }

export const StackedBar = ({ label, parts }: Props) => (
  <figure class="stacked" aria-label={label}>
    <Bar parts={parts} />
    <ul class="legend">
      {parts.map(({ colour, label: name, text, filter }) => (
        <li>
          {filter ? (
            <button type="button" class="legend-filter" aria-pressed={filter.isOn} title={filter.hint} onClick={filter.onToggle}>
              <Swatch colour={colour} />{name} <b class="number">{text}</b>
            </button>
          ) : <><Swatch colour={colour} />{name} <b class="number">{text}</b></>}
        </li>
      ))}
    </ul>
  </figure>
);
