"""Answers of the web API about the timeline. Times count from the profile's start; `id` identifies an event."""

from __future__ import annotations

from tb_tidy_plugin.profile.timeline.timeline import TimelineLane
from tb_tidy_plugin.report.value import Model
from tb_tidy_plugin.words.vocabulary import KnownBy


class TimelineSteps(Model, frozen=True):
    """The steps in order of start; `left_out` is the number of further ones, too many to list."""

    names: list[str]
    start_ns: list[int]
    duration_ns: list[int]
    left_out: int


class TimelineBusy(Model, frozen=True):
    """Percentage of busy time in each of equally long parts of the recording.

    `host` is operators on any thread, `device` kernels, copies and fills; empty if none of them was recorded.
    """

    host: list[int]
    device: list[int]


class TimelineLanes(Model, frozen=True):
    """`GET api/timeline/lanes`: the lanes to draw, from 0 to `until_ns`."""

    until_ns: int
    events: int
    lanes: list[TimelineLane]
    steps: TimelineSteps
    busy: TimelineBusy


class TimelineBars(Model, frozen=True):
    """Bars by lane, depth and start: one entry per bar in each column.

    Attributes:
        depth: the row within the lane.
        events: number of events in a bar; more than 1 for a block of events too short to tell apart.
        busy_ns: sum of their durations.
        id, name, category: of a single event; of a block -1, -1, and the category of its first event.
            `name` is a position in the answer's `names`, `category` one of `CATEGORIES`.
        marked: number of them that the finding matched.
    """

    lane: list[int]
    depth: list[int]
    start_ns: list[int]
    duration_ns: list[int]
    busy_ns: list[int]
    events: list[int]
    id: list[int]
    name: list[int]
    category: list[int]
    marked: list[int]


class TimelineArrows(Model, frozen=True):
    """From launches to what they launched, one entry per arrow in each column; `left_out` is the number of others."""

    from_lane: list[int]
    from_depth: list[int]
    from_ns: list[int]
    to_lane: list[int]
    to_depth: list[int]
    to_ns: list[int]
    left_out: int


class TimelineSlice(Model, frozen=True):
    """`GET api/timeline?from_ns=…&to_ns=…&width=…`: a window at that many pixels.

    `lanes=0,3` selects lanes, `finding` the finding whose events are marked. Every event of the window is in exactly
    one bar. An answer has at most 12,000 bars, 300 arrows and names of at most 160 characters: below 3 MB, and usually
    20 to 200 kB, a quarter of that when compressed.

    Attributes:
        pixel_ns: shorter events were merged; wider than asked for if there would have been too many bars.
        left_out: number of missing bars.
    """

    from_ns: int
    to_ns: int
    pixel_ns: float
    names: list[str]
    bars: TimelineBars
    arrows: TimelineArrows
    left_out: int


class TimelineRef(Model, frozen=True):
    """An event that another one leads to."""

    id: int
    name: str
    start_ns: int
    duration_ns: int
    lane: int


class TimelineEvent(Model, frozen=True):
    """`GET api/timeline/event?event=…`: one event, and where it is.

    Attributes:
        category: kind of the event, in words.
        step: the step it begins in.
        inside: the event around it.
        launched_by: the call that launched it.
        launched: number of kernels, copies and fills that were launched while it ran, and the sum of their durations.
        arrows: to those, or from the launch.
        operator: of a replayed kernel, the operator that launched it when its graph was captured. known_by: how that is
            known; for events of the capture, how their kernels are. Null for events that were recorded themselves.
    """

    id: int
    name: str
    category: str
    lane: int
    depth: int
    start_ns: int
    duration_ns: int
    step: str | None
    shapes: str
    inside: TimelineRef | None
    launched_by: TimelineRef | None
    launched: int
    launched_ns: int
    arrows: TimelineArrows
    operator: TimelineRef | None = None
    known_by: KnownBy | None = None


class TimelineFound(Model, frozen=True):
    """`GET api/timeline/found?q=…`: an event whose name contains the text, next to another one or to a point in time.

    Attributes:
        total: number of matching events.
        index: position of this one among them by its start, from 0; null if there is none.
        event: its id; null if there is none.
    """

    total: int
    index: int | None
    event: int | None


class TimelineMarks(Model, frozen=True):
    """`GET api/timeline/marks?finding=…`: positions of a finding's events in a window.

    One entry per pixel with any. `first` is the id of the first event there.
    """

    total: int
    start_ns: list[int]
    events: list[int]
    first: list[int]
