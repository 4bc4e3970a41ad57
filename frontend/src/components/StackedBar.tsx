/** A whole and its parts, with the parts named below. */

interface Piece { part: string; label: string; share: number; text: string }

/** The bar alone: decoration, what it says stands beside it in words. */
export const Bar = ({ parts, tall = false }: { parts: readonly Piece[]; tall?: boolean }) => (
  <div class={`stacked-bar${tall ? ' tall' : ''}`} aria-hidden="true">
    {parts.map(({ part, share, label: name, text }) => (
      <span class={`stacked-part part-${part}`} style={{ flexGrow: share }} title={`${name}: ${text}`} />
    ))}
  </div>
);

export const Swatch = ({ part }: { part: string }) => <span class={`swatch part-${part}`} aria-hidden="true" />;

interface Props { label: string; parts: readonly Piece[] }

export const StackedBar = ({ label, parts }: Props) => (
  <figure class="stacked" aria-label={label}>
    <Bar parts={parts} />
    <ul class="legend">
      {parts.map(({ part, label: name, text }) => (
        <li><Swatch part={part} />{name} <b class="number">{text}</b></li>
      ))}
    </ul>
  </figure>
);
