/** Data on one event of the timeline, in words. */

import type { ComponentChildren } from 'preact';
import { count, moment, nanoseconds, plural } from '../base/units';
import { FROM_CAPTURE, type KnownFromCapture } from '../base/words';

interface Ref { id: number; name: string; start_ns: number; duration_ns: number }
interface EventLike extends Ref {
  category: string; lane: number; step: string | null; shapes: string; inside: Ref | null; launched_by: Ref | null; launched: number; launched_ns: number;
  operator?: Ref | null; known_by?: KnownFromCapture | null;
}

interface Props { event: EventLike; lane: string; onGo: (id: number) => void }

export const EventFacts = ({ event, lane, onGo }: Props) => (
  <section class="event-facts" aria-label="The marked event">
    <h2>{event.name}</h2>
    <dl>
      <Fact name="Kind">{event.category}</Fact>
      <Fact name="Duration"><b>{nanoseconds(event.duration_ns)}</b></Fact>
      <Fact name="Start">{moment(event.start_ns)}</Fact>
      <Fact name="Thread or stream">{lane}</Fact>
      <Fact name="Step">{event.step ?? 'outside all steps'}</Fact>
      {event.shapes && <Fact name="Shapes">{event.shapes}</Fact>}
      {event.inside && <Fact name="Inside"><Go to={event.inside} onGo={onGo} /></Fact>}
      {event.launched_by && (
        <Fact name="Launched by"><Go to={event.launched_by} onGo={onGo} />, {nanoseconds(Math.max(event.start_ns - event.launched_by.start_ns, 0))} earlier</Fact>
      )}
      {event.operator && <Fact name="Operator"><Go to={event.operator} onGo={onGo} /></Fact>}
      {event.known_by && <Fact name="From capture">{FROM_CAPTURE[event.known_by]}</Fact>}
      {event.launched > 0 && <Fact name="Launched">{plural(event.launched, 'kernel or copy', 'kernels and copies')} of {nanoseconds(event.launched_ns)}</Fact>}
    </dl>
  </section>
);

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => <div><dt>{name}</dt><dd>{children}</dd></div>;

const Go = ({ to, onGo }: { to: Ref; onGo: (id: number) => void }) => (
  <button type="button" class="go" onClick={() => onGo(to.id)} title={`${to.name}, ${nanoseconds(to.duration_ns)}`}>{to.name}</button>
);

/** One sentence for a label or an announcement. */
export const eventText = (event: EventLike, lane: string): string =>
  [`${event.name}, ${event.category}`, nanoseconds(event.duration_ns), `starts at ${moment(event.start_ns)}`, lane, event.step,
    event.launched > 0 && `launches ${count(event.launched)}`].filter(Boolean).join(', ');
