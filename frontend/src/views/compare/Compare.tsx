/** Two recordings side by side: the differences, and how far fixes kept their promise. */

import { useEffect } from 'preact/hooks';
import type { Comparison } from '../../api/types.gen';
import { verdictText } from '../../base/compare';
import { sidesText, type Sides } from '../../base/sides';
import { Button, CopyButton } from '../../components/Button';
import { Failure } from '../../components/Failure';
import { Notice } from '../../components/Notice';
import { Late, ProgressBar, Skeleton } from '../../components/Progress';
import { Message } from '../../components/Spans';
import { nameSides, sides, useComparison, work } from '../../state/compare';
import { copyLink } from '../../state/exports';
import { addCss } from '../../state/host';
import { announce } from '../../state/notices';
import css from '../../styles/compare.css?inline';
import { Breakdown } from './Breakdown';
import { Calls } from './Calls';
import { Choose } from './Choose';
import { Difference } from './Difference';
import { Findings } from './Findings';
import { Promises } from './Promises';
import { Verdict } from './Verdict';

addCss(css);

export function Compare() {
  const now = sides.value;
  useEffect(nameSides, [now && sidesText(now)]);
  return (
    <main class="page" aria-labelledby="page-title">
      <div class="page-body compare-body">
        <div class="compare-head">
          <h1 id="page-title">Compare</h1>
          <CopyButton icon="link" label="Copy link" onCopy={copyLink} />
        </div>
        {now ? <Both now={now} /> : <Skeleton rows={4} />}
      </div>
    </main>
  );
}

function Both({ now }: { now: Sides }) {
  const compared = useComparison(now);
  return (
    <>
      <Choose sides={now} compared={compared.kind === 'ready' ? compared.answer.comparison : null} />
      <Result now={now} compared={compared} />
    </>
  );
}

function Result({ now, compared }: { now: Sides; compared: ReturnType<typeof useComparison> }) {
  switch (compared.kind) {
    case 'same': return <p class="compare-hint">Both sides are the same. Choose another run, or other steps of this one: in the strip, or as <code>3-7</code> beside it.</p>;
    case 'working': return <Late key={sidesText(now)}><Working /></Late>;
    case 'failed': return <div role="alert"><Failure error={compared.error} onRetry={compared.again} /></div>;
    case 'ready': return (
      <>
        {compared.stale && (
          <Notice kind="info" action={<Button kind="primary" onClick={compared.again}>Compare again</Button>}>
            <p>A newer recording of one side was found.</p>
          </Notice>
        )}
        <Changes comparison={compared.answer.comparison} />
        <Difference key={sidesText(now)} sides={now} />
        <Calls sides={now} answer={compared.answer} />
      </>
    );
    default: return compared satisfies never;
  }
}

function Working() {
  const { done, of, fraction, stage } = work.value;
  const analysing = done < of;
  return (
    <div class="compare-work">
      <ProgressBar label="Comparing" fraction={fraction} />
      <p class="progress-line">
        <span>{analysing ? `${done} of ${of} recordings are analysed. ${stage}` : 'Working out what changed'}</span>
      </p>
    </div>
  );
}

function Changes({ comparison }: { comparison: Comparison }) {
  const verdict = verdictText(comparison);
  useEffect(() => announce(verdict), [verdict]);
  return (
    <>
      {comparison.notes.length > 0 && (
        <Notice kind="warning">
          <p><b>Before you read the numbers</b></p>
          <ul class="notes">{comparison.notes.map((note) => <li><Message text={note} /></li>)}</ul>
        </Notice>
      )}
      <Verdict comparison={comparison} />
      <Promises comparison={comparison} />
      <Findings changes={comparison.findings} />
      <Breakdown comparison={comparison} />
    </>
  );
}
