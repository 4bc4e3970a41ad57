/** A chart or the same figures as a table, with a switch. */

import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

interface Props { title: string; level?: 2 | 3; note?: string; aside?: ComponentChildren; chart: ComponentChildren; table: () => ComponentChildren }

export function TableTwin({ title, level = 2, note = '', aside, chart, table }: Props) {
  const Heading = level === 2 ? 'h2' : 'h3';
  const [asTable, setAsTable] = useState(false);
  return (
    <section class="chart" aria-label={title}>
      <div class="chart-head">
        <Heading>{title}</Heading>
        {note && <span class="muted">{note}</span>}
        <span class="chart-space" />
        {aside}
        <button type="button" class="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>Show as table</button>
      </div>
      {asTable ? table() : chart}
    </section>
  );
}
