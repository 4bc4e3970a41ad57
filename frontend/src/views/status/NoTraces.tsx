/** The first page of a new user: nothing is there yet, and how to change that. */

import { plainLines } from '../../base/tokens';
import { CopyButton } from '../../components/Button';
import { Code } from '../../components/Code';
import { Hero } from '../../components/Hero';
import { Skeleton } from '../../components/Progress';
import { copy } from '../../state/clipboard';

const RECORD = `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(schedule=schedule(wait=1, warmup=1, active=3), record_shapes=True, with_stack=True,
             on_trace_ready=tensorboard_trace_handler("runs/first")) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()
`;

export const NoTraces = ({ logdirs }: { logdirs: readonly string[] }) => (
  <main class="detail">
    <Hero title="No traces yet">
      <p>TorchTidy reads what <code>torch.profiler</code> records. Record a few steps of your training:</p>
      <Code label="How to record a trace" lines={plainLines(RECORD.trimEnd().split('\n'))} />
      <div class="actions"><CopyButton label="Copy the code" onCopy={() => copy(RECORD, 'Code')} /></div>
      <p class="muted">Looked for traces, <code>*.json</code> and <code>*.json.gz</code>, in:</p>
      <ul class="muted path">{logdirs.map((logdir) => <li>{logdir}</li>)}</ul>
      <p class="muted">New traces appear here within seconds.</p>
    </Hero>
  </main>
);

export const Scanning = () => (
  <main class="detail"><Hero title="Looking for traces"><Skeleton rows={3} /></Hero></main>
);

export const Starting = () => <main class="detail" aria-busy="true"><h1 class="hidden">TorchTidy</h1><Skeleton rows={6} /></main>;
