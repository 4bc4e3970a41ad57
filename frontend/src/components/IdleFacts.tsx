/** Why a device idles for a while, in words: the parts of the gap, and how each is known. */

import type { ComponentChildren } from 'preact';
import { moment, nanoseconds } from '../base/units';

interface Ref { id: number; name: string }
export interface IdleReason {
  title: string;
  ns: number;
  /** The host's activity meanwhile, and the next device work; null if neither is known. */
  call: Ref | null;
  work: Ref | null;
  /** The evidence; empty without any. */
  proof: string;
  advice: ComponentChildren;
}

interface Props { start_ns: number; end_ns: number; reasons: readonly IdleReason[]; onGo: (id: number) => void }

export const IdleFacts = ({ start_ns: start, end_ns: end, reasons, onGo }: Props) => (
  <section class="event-facts" aria-label="Why the device idles">
    <h2 class="idle-head">No device works for {nanoseconds(end - start)}</h2>
    <p class="muted">From {moment(start)} to {moment(end)}.</p>
    <ol class="idle-reasons">
      {reasons.map(({ title, ns, call, work, proof, advice }) => (
        <li key={title}>
          <b>{nanoseconds(ns)}: {title}</b>
          {call && <span>The host is in <Go to={call} onGo={onGo} />.</span>}
          {work && <span>The device waits for <Go to={work} onGo={onGo} />.</span>}
          <span class="muted">{proof ? `Known because ${proof}.` : 'Nothing in the recording shows why.'}</span>
          {advice && <span>{advice}</span>}
        </li>
      ))}
    </ol>
  </section>
);

const Go = ({ to, onGo }: { to: Ref; onGo: (id: number) => void }) => <button type="button" class="go" onClick={() => onGo(to.id)}>{to.name}</button>;
