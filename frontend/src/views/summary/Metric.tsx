/** One figure with its name and its origin. */

import type { Line } from '../../base/formulas';
import { Explained } from '../../components/Explained';

interface Props { name: string; value: string; note: string; more?: string; title?: string; strong?: boolean; wide?: boolean; formula?: readonly Line[] }

export const Metric = ({ name, value, note, more = '', title, strong = false, wide = false, formula = [] }: Props) => (
  <div class={`metric${strong ? ' strong' : ''}${wide ? ' wide' : ''}`} title={title}>
    <dt>{name}{formula.length > 0 && <Explained what={name} lines={formula} />}</dt>
    <dd class="metric-value">{value}</dd>
    <dd class="metric-note">{note}</dd>
    {more && <dd class="metric-note">{more}</dd>}
  </div>
);
