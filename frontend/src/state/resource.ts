/** The life of a request: sent under a key, repeated until there is an answer, aborted, cached. */

import { batch, signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { ErrorInfo } from '../api/types.gen';
import { pause } from '../base/waiting';
import { faultInfo, gone, reach } from './connection';

/** Returns the answer, and may show earlier ones on the way to it. `given` is aborted once nobody waits for it. */
export type Question<A> = (given: AbortSignal, show: (answer: A) => void) => Promise<A>;

export type Answered<A> =
  | { kind: 'loading' }
  | { kind: 'failed'; error: ErrorInfo | null; again: () => void }
  | { kind: 'ready'; answer: A };

export interface Resource<A> {
  /** The last answers by key, oldest first. An answer stays while it is requested again. */
  answers: ReadonlySignal<ReadonlyMap<string, A>>;
  /** Why the last request under a key failed; null if the server is gone, which a bar reports. */
  failures: ReadonlySignal<ReadonlyMap<string, ErrorInfo | null>>;
  /** The keys with a pending request. */
  asking: ReadonlySignal<ReadonlyMap<string, unknown>>;
  /** Sends a request, and aborts the previous one under this key. True once there is an answer. */
  ask: (key: string, question: Question<A>) => Promise<boolean>;
  /** Sends a request unless one is pending. The result releases it; the last release aborts the request. */
  join: (key: string, question: Question<A>) => () => void;
  put: (key: string, answer: A) => void;
  /** Aborts the request under a key, or all. */
  stop: (key?: string) => void;
  /** Forgets the error of the request under a key, or all. */
  forgive: (key?: string) => void;
  /** Forgets the answer under a key, or all. */
  forget: (key?: string) => void;
}

interface Options {
  /** Number of cached answers. */
  keep?: number;
  /** An answer never changes, so that a known one is not requested again. */
  once?: boolean;
  /** A request aborts those under other keys, too. */
  alone?: boolean;
}

export function resource<A>({ keep = 1, once = false, alone = false }: Options = {}): Resource<A> {
  const answers = signal<ReadonlyMap<string, A>>(new Map());
  const failures = signal<ReadonlyMap<string, ErrorInfo | null>>(new Map());
  const asking = signal<ReadonlyMap<string, AbortController>>(new Map());
  const holders = new Map<string, number>();

  const forgive = (key?: string): void => { failures.value = without(failures.peek(), key); };

  function put(key: string, answer: A): void {
    const others = [...without(answers.peek(), key)];
    answers.value = new Map([...others.slice(Math.max(0, others.length + 1 - keep)), [key, answer]]);
  }

  function stop(key?: string): void {
    for (const [each, turn] of asking.peek()) if (key === undefined || each === key) turn.abort();
    if (asking.peek().size > 0) asking.value = without(asking.peek(), key);
  }

  async function ask(key: string, question: Question<A>): Promise<boolean> {
    const turn = new AbortController();
    const { signal: given } = turn;
    const show = (answer: A): void => {
      if (given.aborted) return;
      batch(() => {
        put(key, answer);
        forgive(key);
      });
    };
    batch(() => {
      stop(alone ? undefined : key);
      asking.value = new Map(asking.peek()).set(key, turn);
    });
    try {
      const answer = await reach(question(given, show));
      end(() => show(answer));
    } catch (error) {
      end(() => { failures.value = new Map(failures.peek()).set(key, faultInfo(error)); });
      return false;
    }
    return !given.aborted;

    function end(outcome: () => void): void {
      if (given.aborted) return;
      batch(() => {
        outcome();
        asking.value = without(asking.peek(), key);
      });
    }
  }

  function join(key: string, question: Question<A>): () => void {
    holders.set(key, (holders.get(key) ?? 0) + 1);
    if (!asking.peek().has(key) && !(once && answers.peek().has(key))) void ask(key, question);
    return () => {
      const left = (holders.get(key) ?? 1) - 1;
      holders.set(key, left);
      if (left > 0) return;
      holders.delete(key);
      stop(key);
    };
  }

  return { answers, failures, asking, ask, join, put, stop, forgive, forget: (key) => { answers.value = without(answers.peek(), key); } };
}

const without = <V>(map: ReadonlyMap<string, V>, key?: string): ReadonlyMap<string, V> =>
  new Map(key === undefined ? [] : [...map].filter(([each]) => each !== key));

/**
 * The answer under a key, for a component: requested while it is on the screen, again when `turn` changes or the server
 * is back. An empty key requests nothing, and a `turn` of null keeps what is known.
 */
export function useResource<A>(of: Resource<A>, key: string, question: Question<A>, turn: string | number | null = 0): Answered<A> {
  const [tries, setTries] = useState(0);
  const offline = gone.value;
  useEffect(() => (key && turn !== null ? of.join(key, question) : undefined), [of, key, turn, tries, offline]);
  const answer = of.answers.value.get(key);
  if (answer !== undefined) return { kind: 'ready', answer };
  const error = of.failures.value.get(key);
  if (error === undefined) return { kind: 'loading' };
  return {
    kind: 'failed', error,
    again: () => {
      of.forgive(key);
      setTries((before) => before + 1);
    },
  };
}

/** The answer, if there is one. */
export const readyOr = <A, B>(answered: Answered<A>, otherwise: B): A | B => (answered.kind === 'ready' ? answered.answer : otherwise);

/** Repeats a request every `ms` until the answer is not null. */
export async function polled<A>(question: () => Promise<A | null>, given: AbortSignal, ms: number): Promise<A> {
  for (;;) {
    const answer = await reach(question());
    given.throwIfAborted();
    if (answer !== null) return answer;
    await pause(ms, given);
  }
}
