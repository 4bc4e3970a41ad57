/** One figure with its name and how it came about. */

interface Props { name: string; value: string; note: string; more?: string; title?: string; strong?: boolean; wide?: boolean }

export const Metric = ({ name, value, note, more = '', title, strong = false, wide = false }: Props) => (
  <div class={`metric${strong ? ' strong' : ''}${wide ? ' wide' : ''}`} title={title}>
    <dt>{name}</dt>
    <dd class="metric-value">{value}</dd>
    <dd class="metric-note">{note}</dd>
    {more && <dd class="metric-note">{more}</dd>}
  </div>
);
