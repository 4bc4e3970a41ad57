/** The web API as typed functions. Addresses are relative: the host page's base element points at the plugin. */

import { lines } from '../base/ndjson';
import { pause } from '../base/waiting';
import type {
  BenchmarkCancel, BenchmarkRequest, BenchmarksAnswer, BenchmarkState, BoardAnswer, BoardQuery, CancelRequest, CompareAnswer, CompareQuery, CpuAnswer, CropQuery, ErrorAnswer, ErrorInfo,
  EventQuery, EventsAnswer, EventsQuery, ExportAnswer, ExportQuery, FileQuery, FilesAnswer, FindQuery, Flame, IdleAnswer, IdleQuery, JobQuery, KernelsAnswer, KernelsQuery, LinesAnswer, MarksQuery, MemoryAnswer,
  ModulesAnswer, MuteChange, MutesAnswer, OperatorsAnswer, OperatorsQuery, ProfileQuery, ProfileState, RanksAnswer, ReportAnswer, ReportQuery, RetryRequest, Roofline, RulesAnswer,
  RunQuery, RunsAnswer, RunsQuery, SliceQuery, SourceAnswer, StackAnswer, StackQuery, TimelineEvent, TimelineFound, TimelineLanes, TimelineMarks, TimelineSlice,
} from './types.gen';

/** The server refused a request, and says why. */
export class ApiError extends Error {
  constructor(readonly info: ErrorInfo) {
    super(info.message);
  }
}

/** Nobody answered: the server has stopped, or the connection is down. */
export class ServerGone extends Error {}

/** Query of routes without parameters. */
type Nothing = Record<string, never>;

const GATEWAY_FAULTS = new Set([502, 503, 504]); // what a proxy says when the server behind it has stopped
const STILL_ANALYSING = 202;
const ASK_AGAIN_MS = 1000;
const KEPT_ANSWERS = 16;

export const getRuns = endpoint<RunsQuery, RunsAnswer>('runs');
export const getBoard = endpoint<BoardQuery, BoardAnswer>('board');
export const getReport = endpoint<ReportQuery, ReportAnswer>('report');
export const getExport = endpoint<ExportQuery, ExportAnswer>('export');
export const getRanks = endpoint<RunQuery, RanksAnswer>('ranks');
export const getRules = endpoint<Nothing, RulesAnswer>('rules');
export const getSource = endpoint<FileQuery, SourceAnswer>('source');
export const getEvents = endpoint<EventsQuery, EventsAnswer>('events');
export const getKernels = endpoint<KernelsQuery, KernelsAnswer>('kernels');
export const getOperators = endpoint<OperatorsQuery, OperatorsAnswer>('operators');
export const getModules = endpoint<ProfileQuery, ModulesAnswer>('modules');
export const getMemory = endpoint<ProfileQuery, MemoryAnswer>('memory');
export const getComparison = endpoint<CompareQuery, CompareAnswer>('compare');
export const getCpu = endpoint<ProfileQuery, CpuAnswer>('cpu');
export const getIdle = endpoint<IdleQuery, IdleAnswer>('idle');
export const getFlame = endpoint<ProfileQuery, Flame>('flame');
export const getRoofline = endpoint<ProfileQuery, Roofline>('roofline');
export const getLines = endpoint<FileQuery, LinesAnswer>('lines');
export const getFiles = endpoint<ProfileQuery, FilesAnswer>('files');
export const getStack = endpoint<StackQuery, StackAnswer>('stack');
export const getMutes = endpoint<Nothing, MutesAnswer>('mutes');
export const getTimelineLanes = endpoint<ProfileQuery, TimelineLanes>('timeline/lanes');
export const getTimelineEvent = endpoint<EventQuery, TimelineEvent>('timeline/event');
export const getTimelineFound = endpoint<FindQuery, TimelineFound>('timeline/found');
export const getTimelineMarks = endpoint<MarksQuery, TimelineMarks>('timeline/marks');
/** Callers keep the answers: a window is not requested twice. */
export const getTimelineSlice = endpoint<SliceQuery, TimelineSlice>('timeline');
export const getBenchmarks = endpoint<ProfileQuery, BenchmarksAnswer>('benchmarks');

/** Repeats the analysis of a trace that failed. */
export const postRetry = (profile: RetryRequest): Promise<ProfileState> => post('retry', profile);

/** Stops an analysis. */
export const postCancel = (profile: CancelRequest): Promise<ProfileState> => post('cancel', profile);

/** Changes the mutes beside the runs, and stores them there from now on. */
export const postMutes = (change: MuteChange): Promise<MutesAnswer> => post('mutes', change);

/** Puts the statements of a finding in the queue. */
export const postBenchmark = (asked: BenchmarkRequest): Promise<BenchmarkState> => post('benchmarks', asked);

export const postBenchmarkCancel = (what: BenchmarkCancel): Promise<BenchmarkState> => post('benchmarks/cancel', what);

/** A part of the recording as a separate trace. */
export async function getCroppedTrace(query: CropQuery): Promise<ArrayBuffer> {
  return reaching((await request(address('timeline/trace', query), {})).arrayBuffer());
}

/** States of one profile during its analysis, until it is done or has failed. */
export const getProgress = (query: ProfileQuery, signal: AbortSignal): AsyncGenerator<ProfileState> => stream(address('progress', query), signal);

/** States of one benchmark until it is over. */
export const getBenchmarkProgress = (query: JobQuery, signal: AbortSignal): AsyncGenerator<BenchmarkState> =>
  stream(address('benchmarks/progress', query), signal);

async function* stream<State>(url: string, signal: AbortSignal): AsyncGenerator<State> {
  const response = await request(url, { signal });
  for await (const line of lines(textOf(response))) {
    const state: State = JSON.parse(line);
    yield state;
  }
}

/** An answer whose ETag has not changed is the same object as before, so that nothing is drawn again. */
function endpoint<Query extends object, Answer>(path: string): (query: Query, signal?: AbortSignal) => Promise<Answer> {
  const kept = new Map<string, { etag: string; answer: Answer }>();
  return async (query, signal) => {
    const url = address(path, query);
    const response = await request(url, signal ? { signal } : {});
    const etag = response.headers.get('etag');
    const last = kept.get(url);
    if (last && last.etag === etag) return last.answer;
    const answer: Answer = await body(response);
    kept.delete(url);
    if (etag) kept.set(url, { etag, answer });
    for (const oldest of [...kept.keys()].slice(0, -KEPT_ANSWERS)) kept.delete(oldest);
    return answer;
  };
}

function address(path: string, query: object): string {
  const parameters = Object.entries<string | number>({ ...query }).map(([key, value]) => `${key}=${encodeURIComponent(value)}`);
  return `api/${path}${parameters.length ? `?${parameters.join('&')}` : ''}`;
}

/** Changes are posted with a header that no other site's page can send. */
async function post<Answer>(path: string, value: unknown): Promise<Answer> {
  const headers = { 'Content-Type': 'application/json', 'X-TorchTidy': '1' };
  return body(await request(address(path, {}), { method: 'POST', headers, body: JSON.stringify(value) }));
}

/** Repeats a read until the analysis that it needs is over. */
async function request(url: string, init: RequestInit): Promise<Response> {
  for (;;) {
    const response = await reaching(fetch(url, init));
    const isUnderWay = response.status === STILL_ANALYSING;
    if (response.ok && !isUnderWay) return response;
    if (!isUnderWay || init.method) throw await faultOf(response);
    await pause(ASK_AGAIN_MS, init.signal);
  }
}

/** fetch throws a TypeError for everything that prevents an answer. */
async function reaching<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw error instanceof TypeError ? new ServerGone() : error;
  }
}

/** `T` is the contract: `types.gen.ts` is generated from the server's own types. */
const body = <T>(response: Response): Promise<T> => reaching(response.json());

/** The server's own words if it has any; a proxy's page instead of them means that the server is gone. */
async function faultOf(response: Response): Promise<Error> {
  const { status: code } = response;
  try {
    const answer: ErrorAnswer = await response.json();
    return new ApiError({ code, message: answer.error.message, advice: answer.error.advice });
  } catch {
    if (GATEWAY_FAULTS.has(code)) return new ServerGone();
    return new ApiError({ code, message: `The server answered with status ${code}.`, advice: 'See the server’s log.' });
  }
}

async function* textOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  for (;;) {
    const { done, value } = await reaching(reader.read());
    if (done) return;
    yield value;
  }
}
