/** Benchmarks of the selected profile: what is known, what waits and runs, and what comes of it. */

import { batch, computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { getBenchmarkProgress, getBenchmarks, postBenchmark, postBenchmarkCancel } from '../api/client';
import type { BenchmarksAnswer, BenchmarkState, ErrorInfo, Finding } from '../api/types.gen';
import { resultText } from '../base/benchmarks';
import { keyText, type ProfileKey } from '../base/selection';
import { reloads } from './answers';
import { faultInfo, gone, reach } from './connection';
import { announce } from './notices';
import { load, renewed, report } from './profile';
import { go } from './route';
import { refreshRuns, selectedKey } from './runs';

const AGAIN_MS = 2000;
const MOST_TRIES = 60; // for a report that takes measurements over; others' benchmarks may hold it up

const known = signal<{ of: string; answer: BenchmarksAnswer } | null>(null);
const failed = signal<{ of: string; error: ErrorInfo | null } | null>(null);
/** Why the last benchmark of a finding could not be put in the queue. */
export const refused = signal<{ finding: string; error: ErrorInfo } | null>(null);

const shown = computed(() => (selectedKey.value ? keyText(selectedKey.value) : ''));
export const benchmarks = computed<BenchmarksAnswer | null>(() => (known.value?.of === shown.value ? known.value.answer : null));
export const benchmarksError = computed(() => (failed.value?.of === shown.value ? failed.value : null));

export const isOver = ({ state = 'queued' }: BenchmarkState): boolean => state === 'done' || state === 'failed' || state === 'cancelled';

/** The last benchmark of a finding since TensorBoard was started. */
export const jobOf = (finding: Finding): BenchmarkState | null => benchmarks.value?.jobs.findLast((job) => job.finding === finding.id) ?? null;

/** Some measurement is not in the report on the screen. */
const behind = computed(() => Object.entries(benchmarks.value?.measurements ?? {}).some(([id, { measured_at: at }]) => {
  const found = report.value?.findings.find((finding) => finding.id === id);
  return found !== undefined && found.measurement?.measured_at !== at;
}));

let turn = new AbortController();

/** For a component: asks for the selected profile's benchmarks, and follows those that are not over. */
export function useBenchmarks(): void {
  const of = shown.value;
  const reload = reloads.value;
  const offline = gone.value;
  useEffect(() => { if (!offline) followBenchmarks(); }, [of, reload, offline]);
}

export function followBenchmarks(): void {
  const key = selectedKey.peek();
  if (!key) return;
  turn.abort();
  turn = new AbortController();
  follow(key, turn.signal).catch((error: unknown) => {
    const fault = faultInfo(error);
    if (fault) failed.value = { of: keyText(key), error: fault };
  });
}

/**
 * One benchmark is watched at a time, the first that is not over: a browser has few connections to a server. At the
 * end the report takes over what was measured.
 */
async function follow(key: ProfileKey, given: AbortSignal): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES;) {
    const answer = await refresh(key, given);
    const next = answer.jobs.find((job) => !isOver(job));
    if (next) {
      await watch(next.job, given);
      continue;
    }
    if (!behind.peek()) return;
    await refreshRuns();
    given.throwIfAborted();
    if (renewed.peek()) await load(key);
    if (behind.peek()) await pause(AGAIN_MS); // other profiles' benchmarks come first
    tries += 1;
  }
}

async function refresh(key: ProfileKey, given: AbortSignal): Promise<BenchmarksAnswer> {
  const answer = await reach(getBenchmarks({ ...key }, given));
  given.throwIfAborted();
  batch(() => {
    takeOver(keyText(key), answer);
    failed.value = null;
  });
  return answer;
}

async function watch(job: number, given: AbortSignal): Promise<void> {
  let last: BenchmarkState | null = null;
  for await (const state of getBenchmarkProgress(job, given)) {
    given.throwIfAborted();
    note(state);
    last = state;
  }
  if (!last || !isOver(last)) await pause(AGAIN_MS); // the stream was cut off
}

/** Takes the state of one benchmark over. */
function note(state: BenchmarkState): void {
  const last = known.peek();
  if (last?.of !== keyText({ run: state.run, worker: state.worker, span: state.span })) return;
  const others = last.answer.jobs.filter(({ job }) => job !== state.job);
  takeOver(last.of, { ...last.answer, jobs: [...others, state].toSorted((a, b) => a.job - b.job) });
}

/** Says of each benchmark that is over that it is, once. */
function takeOver(of: string, answer: BenchmarksAnswer): void {
  const before = known.peek()?.of === of ? known.peek()?.answer.jobs ?? [] : [];
  known.value = { of, answer };
  for (const job of answer.jobs) if (isOver(job) && before.some((each) => each.job === job.job && !isOver(each))) announce(endText(job));
}

function endText({ state, measurement, problem }: BenchmarkState): string {
  if (state === 'cancelled') return 'Benchmark cancelled';
  return measurement ? `Benchmark done. ${resultText(measurement)}` : `Benchmark failed. ${problem?.message ?? ''}`;
}

/** What comes of it may change the order of the list, but not what is open. */
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

const pause = (ms: number): Promise<void> => new Promise((resolve) => { setTimeout(resolve, ms); });
