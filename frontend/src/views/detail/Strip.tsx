/** A matched event on the timeline, with the lanes related to it, and the places of the others in its step. */

import { useEffect, useRef } from 'preact/hooks';
import type { Finding, TimelineEvent, TimelineLanes } from '../../api/types.gen';
import { boxesAround, type Bar } from '../../base/timelineLayout';
import { count, moment, nanoseconds, plural } from '../../base/units';
import { Button } from '../../components/Button';
import { eventText } from '../../components/EventFacts';
import { Failure } from '../../components/Failure';
import { Minimap } from '../../components/Minimap';
import { SendTrace } from '../../components/SendTrace';
import { TimelineCanvas } from '../../components/TimelineCanvas';
import { Waiting } from '../../components/Waiting';
import { timelineLanes, useAnswer } from '../../state/answers';
import { useWantedFocus } from '../../state/focus';
import { addCss } from '../../state/host';
import { downloadCropped, openInPerfetto, PERFETTO_HOST } from '../../state/perfetto';
import { limitsOf, markEvent, openTimeline, stepsAround, useMarks, useNeeded, useSlices, useStripWindow, useTimelineEvent } from '../../state/timeline';
import css from '../../styles/timeline.css?inline';

addCss(css);

const STRIP_PX = 160;
const MARK_PX = 400;

interface Props {
  finding: Finding;
  /** Id of the event, empty while none is known. */
  shown: string;
  onOccurrence: (by: 1 | -1) => void;
}

export const Strip = (props: Props) => (
  <Waiting of={useAnswer(timelineLanes)}>{(lanes) => <Around {...props} lanes={lanes} />}</Waiting>
);

function Around({ lanes, shown, ...props }: Props & { lanes: TimelineLanes }) {
  const event = useTimelineEvent(shown);
  if (!event) return <div class="timeline-empty" />;
  return <Drawn lanes={lanes} event={event} {...props} />;
}

function Drawn({ lanes, event, finding, onOccurrence }: Omit<Props, 'shown'> & { lanes: TimelineLanes; event: TimelineEvent }) {
  const limits = limitsOf(lanes);
  const camera = useStripWindow(event, limits);
  const boxes = boxesAround(event, lanes.lanes);
  const slices = useSlices(limits, boxes.map(({ lane }) => lane), finding.id);
  useNeeded(slices, camera.window);
  const step = stepsAround(lanes, event.start_ns, 0, limits);
  const marks = useMarks(finding.id, step, MARK_PX);
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLElement | null>(null);
  useEffect(() => { canvas.current = place.current?.querySelector('[role=application]') ?? null; });
  useWantedFocus('timeline', canvas);
  const select = (bar: Bar | null): void => {
    if (bar && bar.events === 1 && bar.id >= 0) markEvent(bar.id);
    else if (bar) camera.setWindow({ from: bar.start_ns, to: bar.start_ns + Math.max(bar.duration_ns, 20) });
  };
  const part = stepsAround(lanes, event.start_ns, 1, camera.window.peek());
  const lane = lanes.lanes[event.lane]?.name ?? '';
  const error = slices.error.value;
  return (
    <div ref={place}>
      <p class="strip-facts">
        <b class="strip-name" title={event.name}>{event.name}</b> {nanoseconds(event.duration_ns)}, starts at {moment(event.start_ns)} in {lane}
        {event.launched > 0 && `, launches ${plural(event.launched, 'kernel or copy', 'kernels and copies')} of ${nanoseconds(event.launched_ns)}`}
      </p>
      <TimelineCanvas label={`Timeline around a matched event: ${eventText(event, lane)}. The evidence table lists all of them.`} height={STRIP_PX} limits={limits}
        window={camera.window} onWindow={camera.setWindow} boxes={boxes} pieces={slices.pieces} arrows={[event.arrows]} selected={event} onSelect={select}
        onOccurrence={onOccurrence} onFit={camera.fit} onRange={() => {}} marking wheels={false} hints={(bar) => lanes.lanes[bar.lane]?.name ?? ''} />
      <Minimap stretch={step} limits={limits} window={camera.window} onWindow={camera.setWindow} busy={lanes.busy} steps={[]} marks={marks?.start_ns ?? []} current={event.start_ns} />
      <p class="strip-below muted">
        {step.count > 0 ? `${event.step ?? 'Step'}: ${nanoseconds(step.to - step.from)}` : `The whole recording: ${nanoseconds(limits.to)}`}
        {marks && `, ${count(marks.total)} matched here`}
      </p>
      {error && <Failure error={error} onRetry={slices.again} />}
      <div class="actions strip-actions">
        <Button onClick={() => onOccurrence(-1)}>Previous event</Button>
        <Button onClick={() => onOccurrence(1)}>Next event</Button>
        <Button onClick={() => openTimeline(camera.window.peek(), finding.id, event.id)}>Whole timeline</Button>
        <SendTrace what="the step of this event and the steps beside it" where={PERFETTO_HOST}
          onSend={() => openInPerfetto(part, event.start_ns)} onDownload={() => downloadCropped(part, event.start_ns)} />
      </div>
    </div>
  );
}
