/** The whole profile over time: threads, streams and steps. */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { TimelineArrows, TimelineEvent, TimelineLanes } from '../../api/types.gen';
import { allBoxes, rowTop, type Bar } from '../../base/timelineLayout';
import { around, lengthOf, showing, within, zoomed, type Span } from '../../base/timelineWindow';
import { count, nanoseconds, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { EventFacts, eventText } from '../../components/EventFacts';
import { Failure } from '../../components/Failure';
import { Minimap } from '../../components/Minimap';
import { SendTrace } from '../../components/SendTrace';
import { TimelineCanvas } from '../../components/TimelineCanvas';
import { LEGEND } from '../../components/timelineColours';
import { Waiting } from '../../components/Waiting';
import { timelineLanes, useAnswer } from '../../state/answers';
import { findings } from '../../state/findings';
import { addCss } from '../../state/host';
import { announce } from '../../state/notices';
import { downloadCropped, openInPerfetto, PERFETTO_HOST } from '../../state/perfetto';
import { go, route } from '../../state/route';
import { askIdle, foldedLanes, foldLanes, limitsOf, markEvent, pinLane, pinnedLanes, stepsAround, useMarks, useIdle, useNeeded, useRoutedWindow, useSlices, useTimelineEvent } from '../../state/timeline';
import { Beside } from './Beside';
import { Idle } from './Idle';
import { Search } from './Search';
import css from '../../styles/timeline.css?inline';

addCss(css);

const REST_PX = 366; // of the page above and below the canvas
const LEAST_PX = 300;
const MARK_PX = 600;
const MARGIN_PX = 60;

export const Timeline = () => (
  <main class="page" aria-labelledby="page-title">
    <div class="page-body timeline-page">
      <h1 id="page-title">Timeline</h1>
      <Waiting of={useAnswer(timelineLanes)}>{(lanes) => <Whole lanes={lanes} />}</Waiting>
    </div>
  </main>
);

function Whole({ lanes }: { lanes: TimelineLanes }) {
  const limits = limitsOf(lanes);
  const finding = findings.value.find(({ id }) => id === route.value.finding) ?? null;
  const { window: shown, setWindow } = useRoutedWindow(limits);
  const slices = useSlices(limits, [], finding?.id ?? '');
  useNeeded(slices, shown);
  const event = useTimelineEvent(route.value.event);
  const folded = foldedLanes();
  const boxes = allBoxes(lanes.lanes, folded, pinnedLanes());
  const idle = useIdle();
  const clicked = useRef(-1);
  const [range, setRange] = useState<Span | null>(null);
  const [scrollTo, setScrollTo] = useState(0);
  const began = useRef(route.peek().win !== '');
  const height = useHeight();
  const marks = useMarks(finding?.id ?? '', limits, MARK_PX);

  useEffect(() => {
    if (!event) return;
    announce(eventText(event, laneName(lanes, event)));
    if (clicked.current === event.id || began.current) {
      began.current = false;
      if (clicked.current === event.id) return;
    } else setWindow(showing(shown.peek(), event, limits));
    if (folded.has(event.lane) && event.depth > 0) foldLanes([event.lane]);
    const top = rowTop(allBoxes(lanes.lanes, foldedLanes(), pinnedLanes()).find(({ lane }) => lane === event.lane), event.depth) ?? 0;
    setScrollTo(top + MARGIN_PX > height ? top - height / 2 : 0);
  }, [event?.id]);

  const select = (bar: Bar | null): void => {
    if (bar && (bar.events > 1 || bar.id < 0)) {
      setWindow(within(zoomed({ from: bar.start_ns, to: bar.start_ns + bar.duration_ns }, 1.1, bar.start_ns + bar.duration_ns / 2, limits), limits));
      return;
    }
    clicked.current = bar?.id ?? -1;
    markEvent(bar?.id ?? null);
  };
  const fold = (lane: number | null): void => {
    const which = boxes.filter((box) => box.isFolded !== undefined && (lane === null || box.lane === lane)).map((box) => box.lane);
    foldLanes(which);
    announce(`${lane === null ? 'All lanes' : lanes.lanes[lane]?.name ?? ''}: ${which.every((each) => foldedLanes().has(each)) ? 'folded' : 'unfolded'}`);
  };
  const pin = (lane: number | null): void => {
    pinLane(lane);
    announce(lane === null ? 'No lane is pinned' : `${lanes.lanes[lane]?.name ?? ''}: ${pinnedLanes().has(lane) ? 'pinned to the top' : 'not pinned'}`);
  };
  const middle = event?.start_ns ?? (shown.peek().from + shown.peek().to) / 2;
  const part = (): { from: number; to: number } => (event ? stepsAround(lanes, middle, 1, shown.peek()) : shown.peek());
  const zoom = (factor: number): void => {
    const { from, to } = shown.peek();
    setWindow(zoomed(shown.peek(), factor, (from + to) / 2, limits));
  };
  const error = slices.error.value;
  return (
    <>
      <div class="timeline-bar">
        <p class="muted">{summaryOf(lanes)}</p>
        <span class="chart-space" />
        <Search from={() => shown.peek().from} />
        <Button onClick={() => zoom(1 / 2)}>Zoom in</Button>
        <Button onClick={() => zoom(2)}>Zoom out</Button>
        <Button onClick={() => setWindow(limits)}>All</Button>
        {event && <Button onClick={() => setWindow(around(event, limits))}>To the event</Button>}
      </div>
      {finding && (
        <p class="timeline-marking">
          <span class="hatch" aria-hidden="true" />
          <span>{count(marks?.total ?? finding.matches)} matched events of “{finding.message.replaceAll('`', '')}” are marked.</span>
          <Button kind="quiet" onClick={() => go({ finding: '', event: route.peek().event }, 'replace')}>Show all in colour</Button>
        </p>
      )}
      <div class="timeline-stage">
        <div>
          <Minimap stretch={limits} limits={limits} window={shown} onWindow={setWindow} busy={lanes.busy} steps={lanes.steps.start_ns} marks={marks?.start_ns ?? []}
            current={event?.start_ns ?? null} />
          <TimelineCanvas label={`Timeline: ${summaryOf(lanes)}. ${event ? `Marked: ${eventText(event, laneName(lanes, event))}.` : 'No event is marked.'}`}
            height={height} limits={limits} window={shown} onWindow={setWindow} boxes={boxes} pieces={slices.pieces}
            arrows={event ? [event.arrows] : fewArrows(slices.pieces.value.map(({ arrows }) => arrows))} selected={event} onSelect={select}
            onFold={fold} onPin={pin} onGap={askIdle} gap={idle?.gap ? { from: idle.gap.start_ns, to: idle.gap.end_ns } : null}
            onFit={() => setWindow(limits)} onRange={setRange} marking={finding !== null} wheels hints={(bar) => lanes.lanes[bar.lane]?.name ?? ''} scrollTo={scrollTo} />
        </div>
        <Beside />
      </div>
      <ul class="timeline-legend" aria-label="Colours">
        {LEGEND.map(({ colour, label }) => <li><span class="timeline-key" style={{ background: `var(${colour})` }} aria-hidden="true" />{label}</li>)}
      </ul>
      {error && <Failure error={error} onRetry={slices.again} />}
      <p class="timeline-said muted" role="status">{range ? `${nanoseconds(lengthOf(range))} chosen.` : ''}</p>
      {event ? <EventFacts event={event} lane={laneName(lanes, event)} onGo={(id) => markEvent(id)} />
        : idle ? <Idle answer={idle} />
        : <p class="muted">Click an event to see what is known of it, a gap of a stream to see why nothing runs, a lane’s name to fold it, its pin to keep it at the top. Drag to move, turn the wheel to zoom, drag with Shift to measure; keys: press ?.</p>}
      <SendTrace what={event ? 'the step of the marked event and the steps beside it' : 'the window above'} where={PERFETTO_HOST}
        onSend={() => openInPerfetto(part(), middle)} onDownload={() => downloadCropped(part(), middle)} />
    </>
  );
}

const laneName = (lanes: TimelineLanes, { lane }: Pick<TimelineEvent, 'lane'>): string => lanes.lanes[lane]?.name ?? '';

function summaryOf({ lanes, events, steps, until_ns: until }: TimelineLanes): string {
  const of = (kind: string): number => lanes.filter((lane) => lane.kind === kind).length;
  const deeper = lanes.reduce((sum, lane) => sum + lane.deeper, 0);
  return [
    `${plural(events, 'event')} in ${nanoseconds(until)}`, plural(of('thread'), 'thread'), of('stream') > 0 && plural(of('stream'), 'stream'),
    plural(steps.names.length + steps.left_out, 'step'), deeper > 0 && `${count(deeper)} too deep to be drawn`,
  ].filter(Boolean).join(', ');
}

const MOST_ARROWS = 60;

/** All events of a window, or none if they would only darken it. */
const fewArrows = (all: readonly TimelineArrows[]): readonly TimelineArrows[] =>
  (all.reduce((sum, { to_ns: to, left_out: more }) => sum + to.length + more, 0) <= MOST_ARROWS ? all : []);

/** The height that the window leaves for the canvas. */
function useHeight(): number {
  const measure = (): number => Math.max(window.innerHeight - REST_PX, LEAST_PX);
  const [height, setHeight] = useState(measure);
  useEffect(() => {
    const onResize = (): void => setHeight(measure());
    window.addEventListener('resize', onResize);
    return () => window.removeEventListener('resize', onResize);
  }, []);
  return height;
}
