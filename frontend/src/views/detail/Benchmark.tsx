/** The rule's two statements, measured: progress, result and code. */

import { useState } from 'preact/hooks';
import type { BenchmarksAnswer, BenchmarkState, BenchmarkStatements, Finding, Measurement } from '../../api/types.gen';
import { queueText } from '../../base/benchmarks';
import { Button, CopyButton } from '../../components/Button';
import { Code } from '../../components/Code';
import { Failure } from '../../components/Failure';
import { ProgressBar } from '../../components/Progress';
import { Select } from '../../components/Select';
import { Message } from '../../components/Spans';
import { benchmarks, benchmarksError, cancelBenchmark, followBenchmarks, isOver, jobOf, refused, startBenchmark, useBenchmarks } from '../../state/benchmarks';
import { copy } from '../../state/clipboard';
import { useLines } from '../../state/highlight';
import { Measured } from './Measured';
import { Section } from './Section';

/** Renders nothing if the rule has no statements for this finding: the user could do nothing. */
export function Benchmark({ finding }: { finding: Finding }) {
  useBenchmarks();
  const answer = benchmarks.value;
  const statements = answer?.findings[finding.id];
  if (!answer && benchmarksError.value) return <Section title="Micro-benchmark"><Failure error={benchmarksError.value} onRetry={followBenchmarks} /></Section>;
  if (!answer || !statements) return null;
  const job = jobOf(finding);
  const { stored, other } = results(answer, finding, job);
  return (
    <Section title="Micro-benchmark" aside={<StateChip answer={answer} job={job} stored={stored} other={other} />}>
      {stored && <Measured finding={finding} measurement={stored} kind={answer.kind} ofEvents={statements.of_events} kept={stored !== unkept(job)} />}
      {other && <Measured finding={finding} measurement={other} kind={answer.kind} ofEvents={statements.of_events} kept={other !== unkept(job)} apart />}
      {!stored && !other && <p class="muted">Both statements below are timed in turns, in a process of their own: with the pattern, and without it.</p>}
      <Action answer={answer} finding={finding} job={job} measured={stored ?? other} devices={statements.devices} />
      <Statements {...statements} />
    </Section>
  );
}

interface Results { stored: Measurement | null; other: Measurement | null }

/** The last measurement, if the server could not store it. */
const unkept = (job: BenchmarkState | null): Measurement | null => (job?.problem ? job.measurement ?? null : null);

/** The measurement that counts, and beside it one from another kind of device than the recording's. */
function results({ measurements, kind }: BenchmarksAnswer, { id }: Finding, job: BenchmarkState | null): Results {
  const found = [unkept(job), measurements[id], job?.measurement].filter((each) => each !== undefined && each !== null);
  const of = (own: boolean): Measurement | null => found.find(({ on }) => (on.kind === kind) === own) ?? null;
  return { stored: of(true), other: of(false) };
}

interface ChipProps extends Results { answer: BenchmarksAnswer; job: BenchmarkState | null }

function StateChip({ answer, job, stored, other }: ChipProps) {
  const text = chipText(answer, job, stored ?? other);
  return <span class={`bench-state${text.startsWith('Failed') ? ' failed' : ''}`}>{text}</span>;
}

function chipText({ refusal }: BenchmarksAnswer, job: BenchmarkState | null, measurement: Measurement | null): string {
  switch (job?.state) {
    case 'queued': return 'Queued';
    case 'measuring': return 'Running';
    case 'failed': return 'Failed';
    case 'cancelled': return measurement ? 'Cancelled; stored result' : 'Cancelled';
    case 'done': return 'Measured';
    default: return measurement ? 'Stored result' : refusal ? 'Not run; off here' : 'Not run';
  }
}

const AS_RECORDED = { value: '', label: 'as recorded' }; // of the recording's kind, else any that exists
const USUAL_S = 2;
const LONG_S = 10;

interface ActionProps { answer: BenchmarksAnswer; finding: Finding; job: BenchmarkState | null; measured: Measurement | null; devices: readonly string[] }

/**
 * The current state and the possible actions. The button stays the same element, so that it keeps the focus when it
 * changes.
 */
function Action({ answer: { refusal, command }, finding, job, measured, devices }: ActionProps) {
  const [device, setDevice] = useState('');
  const live = job !== null && !isOver(job);
  const unsure = measured !== null && !measured.trusted && measured.equal !== false; // more time would help
  if (refusal && !live) return <Refused message={refusal.message} advice={refusal.advice} command={`${command} --finding ${finding.id}`} />;
  const error = refused.value?.finding === finding.id ? refused.value.error : job && job.state !== 'cancelled' ? job.problem : null;
  return (
    <>
      {error && !live && <p class="bench-problem" role="note"><b><Message text={error.message} /></b> <Message text={error.advice} /></p>}
      <div class={`bench-action${live ? ' live' : ''}`}>
        <div class="bench-progress">
          {live && <p>{progressText(job)}</p>}
          {live && <ProgressBar label="Benchmark" fraction={job.fraction ?? 0} />}
        </div>
        {!live && devices.length > 1 && (
          <Select label="Device" value={device} options={[AS_RECORDED, ...devices.map((each) => ({ value: each, label: each }))]} onChange={setDevice} />
        )}
        <Button kind={live || measured ? 'plain' : 'primary'}
          onClick={() => void (live ? cancelBenchmark(finding, job) : startBenchmark(finding, unsure ? LONG_S : USUAL_S, device))}>
          {live ? 'Cancel' : unsure ? 'Measure longer' : measured || error ? 'Measure again' : 'Run benchmark'}
        </Button>
      </div>
    </>
  );
}

const progressText = ({ state, stage = '', ahead = 0 }: BenchmarkState): string =>
  (state === 'measuring' ? `${stage || 'Starting'}…` : queueText(ahead));

/** If a benchmark cannot be started here, it can be started in a shell; the page finds the result. */
const Refused = ({ message, advice, command }: { message: string; advice: string; command: string }) => (
  <div class="bench-off">
    <p><b><Message text={message} /></b> <Message text={advice} /></p>
    <p class="muted">Or measure in a shell, and reload:</p>
    <div class="command">
      <pre tabIndex={0} role="region" aria-label="Command that measures this finding">{command}</pre>
      <CopyButton iconOnly label="Copy the command" onCopy={() => copy(command, 'Command')} />
    </div>
    <p class="muted">On another machine add <code>--save</code>: the result then lies beside the trace.</p>
  </div>
);

function Statements({ before, after, setup }: BenchmarkStatements) {
  return (
    <div class="bench-statements">
      <div class="change">
        <div class="before"><h3>Before, as it is run</h3><Code label="Statement before" lines={useLines(before)} sign="−" /></div>
        <div class="after"><h3>After, as it is run</h3><Code label="Statement after" lines={useLines(after)} sign="+" /></div>
      </div>
      <details>
        <summary>Setup, run once before each</summary>
        <Code label="Setup" lines={useLines(setup)} />
      </details>
    </div>
  );
}
