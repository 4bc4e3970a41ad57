/** Coloured source lines, from a worker. */

import { useEffect, useState } from 'preact/hooks';
import { plainLines, type Line } from '../base/tokens';
import type { Done, Job } from './highlight.worker';

const MOST_CHARACTERS = 2_000_000; // beyond that the tokens take more memory than their colours are worth

const waiting = new Map<number, (lines: readonly Line[] | null) => void>();
let worker: Worker | null | undefined;
let jobs = 0;

/** The lines of Python code in colour, null without a worker: then the plain text stays. */
export function highlight(code: string): Promise<readonly Line[] | null> {
  worker ??= start();
  if (!worker || code.length > MOST_CHARACTERS) return Promise.resolve(null);
  jobs += 1;
  const job: Job = { id: jobs, code };
  worker.postMessage(job);
  return new Promise((resolve) => { waiting.set(job.id, resolve); });
}

/** For a component: lines of code, in colour once they are ready. */
export function useLines(code: string): readonly Line[] {
  const text = code.replace(/\n+$/, '');
  const [lines, setLines] = useState<readonly Line[]>(() => plainLines(text.split('\n')));
  useEffect(() => {
    let mine = true;
    setLines(plainLines(text.split('\n')));
    void highlight(text).then((coloured) => { if (mine && coloured) setLines(coloured); });
    return () => { mine = false; };
  }, [text]);
  return lines;
}

function start(): Worker | null {
  if (typeof Worker === 'undefined') return null;
  try {
    const started = new Worker(new URL('./highlight.worker.ts', import.meta.url), { type: 'module' });
    started.addEventListener('message', ({ data }: MessageEvent<Done>) => finish(data.id, data.lines));
    started.addEventListener('error', giveUp);
    return started;
  } catch {
    return null;
  }
}

function finish(id: number, lines: readonly Line[] | null): void {
  waiting.get(id)?.(lines);
  waiting.delete(id);
}

function giveUp(): void {
  worker = null;
  for (const id of waiting.keys()) finish(id, null);
}
