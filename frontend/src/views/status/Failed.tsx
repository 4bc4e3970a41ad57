/** Profiles, or a whole server, without a report. */

import type { ErrorInfo, Problem } from '../../api/types.gen';
import { plural } from '../../base/units';
import { Button, CopyButton } from '../../components/Button';
import { Hero } from '../../components/Hero';
import { Message } from '../../components/Spans';
import { retry, revalidate } from '../../state/actions';
import { copy } from '../../state/clipboard';

export const Failed = ({ problem }: { problem: Problem }) => (
  <main class="detail">
    <Hero title="This trace could not be read">
      <p role="alert"><b><Message text={problem.error} /></b></p>
      <p><Message text={problem.advice} /></p>
      <p class="muted path">{problem.path}</p>
      {problem.recovered_events > 0 && <p class="muted">{plural(problem.recovered_events, 'event')} could be read before the fault.</p>}
      <div class="actions">
        <Button kind="primary" onClick={() => void retry()}>Try again</Button>
        <CopyButton label="Copy details" onCopy={() => copy(`${problem.path}\n${problem.error}\n${problem.advice}\n`, 'Details')} />
      </div>
    </Hero>
  </main>
);

export const Broken = ({ error }: { error: ErrorInfo }) => (
  <main class="detail">
    <Hero title="The server could not answer">
      <p role="alert"><b><Message text={error.message} /></b></p>
      <p><Message text={error.advice} /></p>
      <div class="actions"><Button kind="primary" onClick={() => void revalidate()}>Try again</Button></div>
    </Hero>
  </main>
);
