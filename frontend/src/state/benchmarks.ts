/** Benchmarks of the selected profile: known, queued and running ones, and their results. */

import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { getBenchmarkProgress, getBenchmarks, postBenchmark, postBenchmarkCancel } from '../api/client';
import type { BenchmarksAnswer, BenchmarkState, ErrorInfo, Finding } from '../api/types.gen';
import { resultText } from '../base/benchmarks';
import { keyText, type ProfileKey } from '../base/selection';
import { pause } from '../base/waiting';
import { reloads } from './answers';
import { faultInfo, gone, reach } from './connection';
import { announce } from './notices';
import { load, renewed, report } from './profile';
import { polled, resource } from './resource';
import { go } from './route';
import { refreshRuns, selectedKey } from './runs';

const AGAIN_MS = 2000;
const MOST_TRIES = 60; // for a report that includes measurements; others' benchmarks may delay it

const known = resource<BenchmarksAnswer>({ alone: true });
/** Why the last benchmark of a finding could not be put in the queue. */
export const refused = signal<{ finding: string; error: ErrorInfo } | null>(null);

const shown = computed(() => (selectedKey.value ? keyText(selectedKey.value) : ''));
export const benchmarks = computed<BenchmarksAnswer | null>(() => known.answers.value.get(shown.value) ?? null);
export const benchmarksError = computed<ErrorInfo | null>(() => known.failures.value.get(shown.value) ?? null);

export const isOver = ({ state = 'queued' }: BenchmarkState): boolean => state === 'done' || state === 'failed' || state === 'cancelled';

/** The last benchmark of a finding since TensorBoard was started. */
export const jobOf = (finding: Finding): BenchmarkState | null => benchmarks.value?.jobs.findLast((job) => job.finding === finding.id) ?? null;

/** True if some measurement is not in the report on the screen. */
const behind = computed(() => Object.entries(benchmarks.value?.measurements ?? {}).some(([id, { measured_at: at }]) => {
  const found = report.value?.findings.find((finding) => finding.id === id);
  return found !== undefined && found.measurement?.measured_at !== at;
}));

/** For a component: requests the selected profile's benchmarks, and follows the unfinished ones. */
export function useBenchmarks(): void {
  const of = shown.value;
  const reload = reloads.value;
  const offline = gone.value;
  useEffect(() => { if (!offline) followBenchmarks(); }, [of, reload, offline]);
}

/** The benchmarks continue if no component shows them: their end is announced, and the report includes them. */
export function followBenchmarks(): void {
  const key = selectedKey.peek();
  if (key) void known.ask(keyText(key), (given) => follow(key, given));
}

/** Watches the queue to its end, until the report includes the measurements. */
function follow(key: ProfileKey, given: AbortSignal): Promise<BenchmarksAnswer> {
  let tries = 0;
  return polled(async () => {
    const answer = await watchQueue(key, given);
    if (!behind.peek() || tries >= MOST_TRIES) return answer;
    tries += 1;
    await refreshRuns();
    given.throwIfAborted();
    if (renewed.peek()) await load(key);
    return behind.peek() ? null : answer; // other profiles' benchmarks come first
  }, given, AGAIN_MS);
}

/** One benchmark at a time, the first unfinished one: a browser has few connections to a server. */
async function watchQueue(key: ProfileKey, given: AbortSignal): Promise<BenchmarksAnswer> {
  for (;;) {
    const answer = await reach(getBenchmarks({ ...key }, given));
    given.throwIfAborted();
    takeOver(keyText(key), answer);
    const next = answer.jobs.find((job) => !isOver(job));
    if (!next) return answer;
    await watch(next.job, given);
  }
}

async function watch(job: number, given: AbortSignal): Promise<void> {
  let last: BenchmarkState | null = null;
  for await (const state of getBenchmarkProgress({ job }, given)) {
    given.throwIfAborted();
    note(state);
    last = state;
  }
  if (!last || !isOver(last)) await pause(AGAIN_MS, given); // the stream was cut off
}

/** Stores the state of one benchmark. */
function note(state: BenchmarkState): void {
  const of = keyText({ run: state.run, worker: state.worker, span: state.span });
  const answer = known.answers.peek().get(of);
  if (!answer) return;
  const others = answer.jobs.filter(({ job }) => job !== state.job);
  takeOver(of, { ...answer, jobs: [...others, state].toSorted((a, b) => a.job - b.job) });
}

/** Announces the end of each benchmark once. */
function takeOver(of: string, answer: BenchmarksAnswer): void {
  const before = known.answers.peek().get(of)?.jobs ?? [];
  known.put(of, answer);
  for (const job of answer.jobs) if (isOver(job) && before.some((each) => each.job === job.job && !isOver(each))) announce(endText(job));
}

function endText({ state, measurement, problem }: BenchmarkState): string {
  if (state === 'cancelled') return 'Benchmark cancelled';
  return measurement ? `Benchmark done. ${resultText(measurement)}` : `Benchmark failed. ${problem?.message ?? ''}`;
}

/** Results may change the order of the list, but not what is open. */
export async function startBenchmark(finding: Finding, budgetS: number, device: string): Promise<void> {
  const key = selectedKey.peek();
  if (!key) return;
  refused.value = null;
  go({ finding: finding.id }, 'replace');
  await act(finding, postBenchmark({ ...key, finding: finding.id, budget_s: budgetS, ...(device && { device }) }));
}

export const cancelBenchmark = (finding: Finding, { job }: BenchmarkState): Promise<void> => act(finding, postBenchmarkCancel({ job }));

async function act(finding: Finding, answer: Promise<BenchmarkState>): Promise<void> {
  try {
    note(await reach(answer));
    followBenchmarks();
  } catch (error) {
    const fault = faultInfo(error);
    if (fault) refused.value = { finding: finding.id, error: fault };
  }
}
