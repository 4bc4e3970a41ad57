/** Placeholder for an answer of the server. */

import type { ComponentChildren } from 'preact';
import { Failure } from './Failure';
import { Skeleton } from './Progress';
import { Message } from './Spans';

interface Props<A> {
  of: { kind: 'loading' } | { kind: 'failed'; error: { message: string; advice: string } | null; again: () => void } | { kind: 'ready'; answer: A };
  children: (answer: A) => ComponentChildren;
}

export function Waiting<A>({ of, children }: Props<A>) {
  switch (of.kind) {
    case 'loading': return <Skeleton rows={8} />;
    case 'failed': return <div class="pad"><Failure error={of.error} onRetry={of.again} /></div>;
    case 'ready': return <>{children(of.answer)}</>;
    default: return of satisfies never;
  }
}

/** The recording lacks something: why, and how to record it. */
export const NotRecorded = ({ reason }: { reason: string }) => (
  <div class="hero"><h2>Not in this recording</h2><p><Message text={reason} /></p></div>
);

