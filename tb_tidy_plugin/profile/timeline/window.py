"""Contents of a timeline window: bars, blocks of bars too short to draw, and arrows from launch to kernel."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.timeline.timeline import Timeline, begins_block
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Rows
from tb_tidy_plugin.trace.sets import among

MOST_BARS = 12_000
"""Most bars of one window. If there are more, wider pixels are assumed until they fit."""


class Bars(msgspec.Struct, frozen=True):
    """Bars of one window, by row and start: bar `i` stands for the events `first[i]:last[i]`.

    Attributes:
        pixel_ns: shorter events are merged with their neighbours.
        left_out: number of bars that are still missing: in a profile of more than `MOST_BARS` rows.
    """

    first: Rows
    last: Rows
    pixel_ns: float
    left_out: int


def bars_in(timeline: Timeline, from_ns: int, to_ns: int, width: int, lanes: Rows | None = None) -> Bars:
    """Bars for `width` pixels from `from_ns` to `to_ns`, in `lanes` or in all of them.

    Every event that overlaps the window is in exactly one bar, and no other event is.
    """
    low, high = _events_in(timeline, from_ns, to_ns)
    if lanes is not None:
        high = np.where(among(timeline.row_lane, lanes), high, low)
    pixel_ns = (to_ns - from_ns) / width
    first, last = _blocks(timeline, low, high, pixel_ns)
    first, last = _merged(timeline, first, last, pixel_ns)
    while len(first) > MOST_BARS and pixel_ns < to_ns - from_ns:
        pixel_ns *= 2
        first, last = _merged(timeline, first, last, pixel_ns)
    return Bars(first[:MOST_BARS], last[:MOST_BARS], pixel_ns, max(len(first) - MOST_BARS, 0))


def marked_in(positions: Rows, bars: Bars) -> Rows:
    """Number of the sorted events `positions` in each bar."""
    counts: Rows = np.searchsorted(positions, bars.last) - np.searchsorted(positions, bars.first)
    return counts


def arrows_in(timeline: Timeline, bars: Bars, most: int) -> tuple[Rows, int]:
    """Positions of launched events that have a bar of their own, and the number of further ones beyond `most`."""
    single = bars.first[bars.last - bars.first == 1]
    launched = single[timeline.launch[single] != ABSENT]
    return launched[:most], max(len(launched) - most, 0)


def launched_within(timeline: Timeline, position: int) -> Rows:
    """Positions of events launched while the event at `position` ran, on its lane; of a launch, by it alone."""
    launched = np.flatnonzero(timeline.launch != ABSENT)
    calls = timeline.launch[launched].astype(np.int64)
    start_ns = timeline.start_ns[calls]
    within = (start_ns >= timeline.start_ns[position]) & (start_ns < timeline.end_ns[position])
    lane = timeline.row_lane[timeline.row_of(np.array([position]))]
    launched, calls = launched[within], calls[within]
    of_lane: Rows = launched[timeline.row_lane[timeline.row_of(calls)] == lane]
    return of_lane


def event_around(timeline: Timeline, position: int) -> int | None:
    """The event in the row above in which the event at `position` begins."""
    row = int(timeline.row_of(np.array([position]))[0])
    if timeline.row_depth[row] == 0:
        return None
    above = slice(int(timeline.row_first[row - 1]), int(timeline.row_first[row]))
    start_ns = timeline.start_ns[position]
    at = above.start + int(np.searchsorted(timeline.start_ns[above], start_ns, side="right")) - 1
    return at if at >= above.start and timeline.end_ns[at] > start_ns else None


def events_between(timeline: Timeline, from_ns: int, to_ns: int, around_ns: int, most: int) -> tuple[Rows, int, int]:
    """Positions of all events in a window, and that window: halved around `around_ns` until it holds at most `most`."""
    while True:
        low, high = _events_in(timeline, from_ns, to_ns)
        if (high - low).sum() <= most or to_ns - from_ns <= 2:  # half of 2 ns around their middle is 2 ns again
            return _ranges(low, high)[:most], from_ns, to_ns
        from_ns, to_ns = (from_ns + around_ns) // 2, (to_ns + around_ns + 1) // 2


def _events_in(timeline: Timeline, from_ns: int, to_ns: int) -> tuple[Rows, Rows]:
    """The slice of each row's events that overlap the window."""
    first, last = timeline.row_first[:-1], timeline.row_first[1:]
    reaching = _first_at_least(timeline.end_ns, first, last, from_ns + 1)
    beginning = _first_at_least(timeline.start_ns, first, last, from_ns)  # an instant at the window's start ends there
    low = np.minimum(reaching, beginning)
    return low, np.maximum(_first_at_least(timeline.start_ns, first, last, to_ns), low)


def _first_at_least(values: NDArray[np.int64], first: Rows, last: Rows, limit: int) -> Rows:
    """The first position in each slice `first[i]:last[i]` of ascending values with at least `limit`."""
    low, high = first.copy(), last.copy()
    while (is_open := low < high).any():
        middle = (low + high) // 2
        below = is_open & (values[np.minimum(middle, len(values) - 1)] < limit)
        low = np.where(below, middle + 1, low)
        high = np.where(is_open & ~below, middle, high)
    return low


def _blocks(timeline: Timeline, low: Rows, high: Rows, pixel_ns: float) -> tuple[Rows, Rows]:
    """The slices `low[i]:high[i]` as the blocks of the coarsest level that is fine enough."""
    level = next((level for level in reversed(timeline.levels) if level.pixel_ns <= pixel_ns), None)
    if level is None:
        first = _ranges(low, high)
        return first, first + 1
    begins, ends = np.searchsorted(level.first, low, side="right"), np.searchsorted(level.first, high)
    some = high > low
    first = np.sort(np.concatenate([low[some], level.first[_ranges(begins[some], ends[some])]]))
    last = np.append(first[1:], 0)
    row_ends = np.searchsorted(first, high[some]) - 1  # the last block of each row
    last[row_ends] = high[some]
    return first, last


def _merged(timeline: Timeline, first: Rows, last: Rows, pixel_ns: float) -> tuple[Rows, Rows]:
    begins: Mask = begins_block(timeline.start_ns, timeline.end_ns, timeline.row_first, first, last, pixel_ns)
    ends = np.append(begins[1:], True)
    return first[begins], last[ends] if len(last) else last


def _ranges(first: Rows, last: Rows) -> Rows:
    """`first[0], first[0] + 1, …` up to `last[0]`, then the same for the next ones."""
    lengths = np.maximum(last - first, 0)
    before = np.cumsum(lengths) - lengths
    positions: Rows = np.arange(int(lengths.sum())) + np.repeat(first - before, lengths)
    return positions
