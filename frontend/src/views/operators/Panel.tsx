/** One row of the operators: its figures, kernels, place and findings. */

import { useEffect, useRef } from 'preact/hooks';
import type { OperatorRow } from '../../api/types.gen';
import { columnsOf, coresText, flopsText, titleOf } from '../../base/operators';
import { placeText } from '../../base/places';
import type { Grouping } from '../../base/route';
import { actionOf } from '../../base/actionTitles';
import { columnTime, count, nanoseconds, partShare } from '../../base/units';
import { Button, IconButton } from '../../components/Button';
import { DataTable } from '../../components/DataTable';
import { SeverityGlyph } from '../../components/Severity';
import { Message } from '../../components/Spans';
import { openFinding, openOperator, showSource } from '../../state/actions';
import { findings } from '../../state/findings';
import { narrow } from '../../state/viewport';

interface Props { row: OperatorRow; by: Grouping; hasDevice: boolean }

export function Panel({ row, by, hasDevice }: Props) {
  const title = titleOf(row, by);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [row.key]);
  const { file = '', line = null } = row;
  const found = findings.value.filter((finding) => row.findings.includes(finding.id));
  const [Box, Title, Part] = narrow.value ? ['main', 'h1', 'h2'] as const : ['aside', 'h2', 'h3'] as const; // alone on the page, it is its content
  return (
    <Box class="panel" aria-label={title}>
      <div class="panel-head">
        <Title ref={heading} tabIndex={-1}>{title}</Title>
        <IconButton icon="close" label="Close" onClick={() => openOperator('')} />
      </div>
      {row.shapes && <p class="path">{row.shapes}</p>}
      {file && line !== null && <Button icon="file" onClick={() => showSource({ file, line })}>{placeText({ file, line })}{row.function && ` · ${row.function}`}</Button>}
      <dl class="facts">
        {columnsOf(by, hasDevice).filter(({ number, id }) => number || id === 'tensor_cores' || (id === 'known_by' && row.known_by)).map(({ label, hint, text }) => (
          <><dt title={hint}>{label}</dt><dd class="number">{text(row)}</dd></>
        ))}
        {row.operators > 1 && <><dt>Operators</dt><dd class="number">{count(row.operators)}</dd></>}
        {hasDevice && row.device_busy_ns !== null && <><dt title="Time in which at least one piece of the work ran">Device busy</dt><dd class="number">{nanoseconds(row.device_busy_ns)}</dd></>}
        {typeof row.longest_ns === 'number' && <><dt>Longest call</dt><dd class="number">{nanoseconds(row.longest_ns)}</dd></>}
        {row.flops !== null && <><dt title="Estimated from the shapes">Work</dt><dd class="number">{flopsText(row.flops).replace('/s', '')}</dd></>}
        {row.bytes_per_second !== null && <><dt title="Estimated from the shapes">Memory traffic</dt><dd class="number">{rateText(row.bytes_per_second)}</dd></>}
        {typeof row.share_of_best === 'number' && <><dt title="Rate by the best of the same operator in this recording">Of the best rate</dt><dd class="number">{partShare(row.share_of_best)}</dd></>}
      </dl>
      {found.length > 0 && (
        <section>
          <Part>Findings</Part>
          <ul>
            {found.map((finding) => (
              <li><button type="button" class="headline-finding" onClick={() => openFinding(finding.id, true)}><SeverityGlyph level={finding.severity} /><span class="headline-text"><Message text={actionOf(finding)} /></span></button></li>
            ))}
          </ul>
        </section>
      )}
      {row.kernels.length > 0 && (
        <section>
          <Part>Largest kernels, copies and fills</Part>
          <DataTable label="Kernels" rows={row.kernels} columns={[
            { label: 'Kernel', cell: (kernel) => <span class="path kernel-name" title={kernel.name}>{kernel.name}</span> },
            { label: 'Kind', cell: (kernel) => kernel.kind },
            { label: 'Calls', number: true, cell: (kernel) => count(kernel.calls) },
            { label: 'Total', number: true, cell: (kernel) => columnTime(kernel.total_ns) },
            { label: 'Tensor cores', cell: (kernel) => coresText(kernel.tensor_cores) },
          ]} />
        </section>
      )}
    </Box>
  );
}

const rateText = (perSecond: number): string => `${flopsText(perSecond).replace('FLOP/s', 'B/s')}`;
