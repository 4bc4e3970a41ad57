/** A server for tests: answers `fetch` from a table, and can be stopped. */

import { vi } from 'vitest';
import type { ProfileReport, ProfileState, RuleInfo, RunsAnswer } from '../api/types.gen';

type Answer = (query: URLSearchParams, posted: string | null) => unknown;

export interface TestServer {
  /** All requests, in order: `report?run=job`. */
  asked: string[];
  answers: Record<string, Answer>;
  down: boolean;
  fetch: typeof fetch;
}

/** Thrown by an answer that is an error. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly advice: string) {
    super(message);
  }
}

export function serve(answers: Record<string, Answer>): TestServer {
  const server: TestServer = {
    asked: [], answers, down: false,
    fetch: async (address, { body } = {}) => respond(server, String(address), typeof body === 'string' ? body : null),
  };
  vi.stubGlobal('fetch', server.fetch);
  return server;
}

/** One run `job` with one profile, done unless `state` says otherwise. */
export function serveProfile(report: ProfileReport, state: ProfileState, rules: RuleInfo[] = []): TestServer {
  const { worker, span } = report;
  return serve({
    runs: (): RunsAnswer => ({ logdirs: ['/runs'], scanning: false, runs: [{ run: 'job', profiles: [{ ...state, worker, span }] }] }),
    report: () => ({ states: [state], report: { run: 'job', profiles: state.state === 'done' ? [report] : [] }, ranks: [0], pending: 0 }),
    lines: (query) => ({ file: query.get('file'), costs: null }),
    stack: () => ({ frames: [], more: 0 }),
    rules: () => ({ rules }),
    mutes: () => ({ kept: false, can_keep: true, path: '/runs/.torchtidy.json', mutes: { findings: [], rules: [] } }),
    benchmarks: () => ({ refusal: null, command: '', kind: 'cpu', findings: {}, jobs: [], measurements: {} }),
    events: () => ({ total: 0, offset: 0, rows: [] }),
    source: () => { throw new Refusal(404, 'No such file.', 'None.'); },
  });
}

function respond(server: TestServer, address: string, posted: string | null): Response {
  if (server.down) throw new TypeError('Failed to fetch'); // the browsers' message for everything that prevented an answer
  const path = address.replace(/^api\//, '');
  const [name = '', query = ''] = path.split('?');
  server.asked.push(path);
  const answer = server.answers[name];
  if (!answer) return json(404, { error: { code: 404, message: `No ${name}.`, advice: '' } });
  try {
    const value = answer(new URLSearchParams(query), posted);
    return value instanceof Response ? value : json(200, value);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return json(error.status, { error: { code: error.status, message: error.message, advice: error.advice } });
  }
}

const json = (status: number, value: unknown): Response => {
  const text = JSON.stringify(value);
  return new Response(text, { status, headers: { 'Content-Type': 'application/json', ETag: `W/"${text.length}-${hash(text)}"` } });
};

const hash = (text: string): number => [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 1_000_003, 7);
