/** A whole and its parts, with the parts named below. */

interface Part { part: string; label: string; share: number; text: string }

interface Props { label: string; parts: readonly Part[] }

export const StackedBar = ({ label, parts }: Props) => (
  <figure class="stacked" aria-label={label}>
    <div class="stacked-bar" aria-hidden="true">
      {parts.map(({ part, share, label: name, text }) => (
        <span class={`stacked-part part-${part}`} style={{ flexGrow: share }} title={`${name}: ${text}`} />
      ))}
    </div>
    <ul class="legend">
      {parts.map(({ part, label: name, text }) => (
        <li><span class={`swatch part-${part}`} aria-hidden="true" />{name} <b class="number">{text}</b></li>
      ))}
    </ul>
  </figure>
);
