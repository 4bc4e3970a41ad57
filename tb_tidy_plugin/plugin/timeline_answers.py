"""Answers about a timeline, made by the process that holds it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tb_tidy_plugin.plugin.timeline_models import (
    TimelineArrows,
    TimelineBars,
    TimelineBusy,
    TimelineEvent,
    TimelineFound,
    TimelineLanes,
    TimelineMarks,
    TimelineRef,
    TimelineSlice,
    TimelineSteps,
)
from tb_tidy_plugin.profile.timeline.timeline import Timeline
from tb_tidy_plugin.profile.timeline.window import arrows_in, bars_in, event_around, launched_within, marked_in
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows

MOST_ARROWS = 300
_MOST_STEPS = 2_000
_MOST_LANES = 2_000
_NAME_LETTERS = 160  # of a bar
WHOLE_NAME_LETTERS = 4_000  # of one event's details

CATEGORY_WORDS = {
    Category.OTHER: "other",
    Category.OPERATOR: "operator",
    Category.ANNOTATION: "annotation",
    Category.PYTHON: "Python function",
    Category.MEMORY: "memory event",
    Category.RUNTIME: "runtime call",
    Category.KERNEL: "kernel",
    Category.COPY: "copy",
    Category.FILL: "fill",
    Category.DEVICE_ANNOTATION: "annotation on the device",
    Category.OVERHEAD: "profiler overhead",
}


def shortened(name: str, most: int = _NAME_LETTERS) -> str:
    """`name`, cut to `most` characters: a trace may hold names of any length."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def lanes_answer(timeline: Timeline) -> TimelineLanes:
    """Lanes, steps and length to draw."""
    steps = timeline.steps.items[:_MOST_STEPS]
    return TimelineLanes(
        until_ns=timeline.until_ns,
        events=len(timeline) - len(timeline.steps.items),
        lanes=[replace(lane, name=shortened(lane.name)) for lane in timeline.lanes[:_MOST_LANES]],
        steps=TimelineSteps(
            names=[shortened(step.name) for step in steps],
            start_ns=[step.start_ns for step in steps],
            duration_ns=[step.duration_ns for step in steps],
            left_out=len(timeline.steps.items) - len(steps),
        ),
        busy=TimelineBusy(host=_percent(timeline.busy.host), device=_percent(timeline.busy.device)),
    )


def _percent(shares: NDArray[np.float64]) -> list[int]:
    return [round(100 * share) for share in shares.tolist()]


def slice_answer(
    timeline: Timeline, from_ns: int, to_ns: int, width: int, lanes: Sequence[int], marked: Sequence[int]
) -> TimelineSlice:
    """Bars for `width` pixels of a window, in all lanes if none are given, with the events in `marked` marked."""
    bars = bars_in(timeline, from_ns, to_ns, width, np.array(lanes, np.int64) if lanes else None)
    first, last = bars.first, bars.last
    single = last - first == 1
    rows = timeline.row_of(first)
    names, number = np.unique(timeline.name[first[single]], return_inverse=True)
    name = np.full(len(first), ABSENT)
    name[single] = number
    start_ns = timeline.start_ns[first]
    busy_ns = np.round(timeline.busy_ns[last] - timeline.busy_ns[first]).astype(np.int64)
    launched, left_out = arrows_in(timeline, bars, MOST_ARROWS)
    return TimelineSlice(
        from_ns=from_ns,
        to_ns=to_ns,
        pixel_ns=bars.pixel_ns,
        names=[shortened(timeline.names[at]) for at in names.tolist()],
        bars=TimelineBars(
            lane=timeline.row_lane[rows].tolist(),
            depth=timeline.row_depth[rows].tolist(),
            start_ns=start_ns.tolist(),
            duration_ns=(timeline.end_ns[last - 1] - start_ns).tolist(),
            busy_ns=busy_ns.tolist(),
            events=(last - first).tolist(),
            id=np.where(single, timeline.ids[first], ABSENT).tolist(),
            name=name.tolist(),
            category=timeline.category[first].tolist(),
            marked=marked_in(timeline.positions_of(np.array(marked, np.int64)), bars).tolist(),
        ),
        arrows=arrows_to(timeline, launched, left_out),
        left_out=bars.left_out,
    )


def arrows_to(timeline: Timeline, launched: Rows, left_out: int) -> TimelineArrows:
    """Arrows to the events at the positions `launched`, from their launches."""
    calls = timeline.launch[launched].astype(np.int64)
    from_rows, to_rows = timeline.row_of(calls), timeline.row_of(launched)
    return TimelineArrows(
        from_lane=timeline.row_lane[from_rows].tolist(),
        from_depth=timeline.row_depth[from_rows].tolist(),
        from_ns=timeline.start_ns[calls].tolist(),
        to_lane=timeline.row_lane[to_rows].tolist(),
        to_depth=timeline.row_depth[to_rows].tolist(),
        to_ns=timeline.start_ns[launched].tolist(),
        left_out=left_out,
    )


def event_answer(timeline: Timeline, event: int) -> TimelineEvent | None:
    """One event; None if no event on the timeline has this id."""
    position = timeline.position_of(event)
    if position is None:
        return None
    row = int(timeline.row_of(np.array([position]))[0])
    launch = int(timeline.launch[position])
    operator, known_by = timeline.replayed(event)
    launched = launched_within(timeline, position)
    arrows = launched if launch == ABSENT else np.array([position])
    step = int(timeline.steps.index_of(timeline.start_ns[[position if launch == ABSENT else launch]])[0])
    return TimelineEvent(
        id=event,
        name=shortened(timeline.names[timeline.name[position]], WHOLE_NAME_LETTERS),
        category=CATEGORY_WORDS[Category(int(timeline.category[position]))],
        lane=int(timeline.row_lane[row]),
        depth=int(timeline.row_depth[row]),
        start_ns=int(timeline.start_ns[position]),
        duration_ns=int(timeline.end_ns[position] - timeline.start_ns[position]),
        step=None if step == ABSENT else shortened(timeline.steps.items[step].name),
        shapes=shortened(timeline.shape_texts[timeline.shapes[position]], WHOLE_NAME_LETTERS),
        inside=_ref(timeline, event_around(timeline, position)),
        launched_by=_ref(timeline, None if launch == ABSENT else launch),
        launched=len(launched),
        launched_ns=int((timeline.end_ns[launched] - timeline.start_ns[launched]).sum()),
        arrows=arrows_to(timeline, arrows[:MOST_ARROWS], max(len(arrows) - MOST_ARROWS, 0)),
        operator=_ref(timeline, None if operator is None else timeline.position_of(operator)),
        known_by=known_by,
    )


def _ref(timeline: Timeline, position: int | None) -> TimelineRef | None:
    if position is None:
        return None
    row = int(timeline.row_of(np.array([position]))[0])
    return TimelineRef(
        id=int(timeline.ids[position]),
        name=shortened(timeline.names[timeline.name[position]]),
        start_ns=int(timeline.start_ns[position]),
        duration_ns=int(timeline.end_ns[position] - timeline.start_ns[position]),
        lane=int(timeline.row_lane[row]),
    )


def found_answer(timeline: Timeline, text: str, from_ns: int, event: int, *, back: bool) -> TimelineFound:
    """The next event after `event` whose name contains `text`, or the previous one; wraps around at the ends.

    If `event` is not among them, the first one that starts at `from_ns` or later, or the last one before.
    """
    folded = text.casefold()
    names = np.array([folded in name.casefold() for name in timeline.names], bool)
    positions = (
        np.flatnonzero(names[timeline.name] & (timeline.ids != ABSENT)) if folded and len(names) else np.zeros(0, int)
    )
    if not len(positions):
        return TimelineFound(total=0, index=None, event=None)
    positions = positions[np.lexsort((positions, timeline.start_ns[positions]))]
    at = np.flatnonzero(timeline.ids[positions] == event)
    if len(at):
        index = int(at[0]) + (-1 if back else 1)
    else:
        index = int(np.searchsorted(timeline.start_ns[positions], from_ns)) - back
    index %= len(positions)
    return TimelineFound(total=len(positions), index=index, event=int(timeline.ids[positions[index]]))


def marks_answer(timeline: Timeline, from_ns: int, to_ns: int, width: int, marked: Sequence[int]) -> TimelineMarks:
    """Pixels of a window in which the events with these ids begin."""
    positions = timeline.positions_of(np.array(marked, np.int64))
    start_ns = timeline.start_ns[positions]
    here = (start_ns >= from_ns) & (start_ns < to_ns)
    order = np.argsort(start_ns[here], kind="stable")
    positions, start_ns = positions[here][order], start_ns[here][order]
    pixel = ((start_ns - from_ns) * (width / max(to_ns - from_ns, 1))).astype(np.int64)
    _, first, counts = np.unique(pixel, return_index=True, return_counts=True)
    return TimelineMarks(
        total=len(positions),
        start_ns=start_ns[first].tolist(),
        events=counts.tolist(),
        first=timeline.ids[positions[first]].tolist(),
    )


def encoded(answer: msgspec.Struct) -> msgspec.Raw:
    """The answer as text."""
    return msgspec.Raw(msgspec.json.encode(answer))
