"""Host threads as lanes: time cut wherever an event begins or ends.

Between two cuts a thread does one thing: an operator's own work, or something that the recording does not name. An edit
of an event changes how fast time passes between its two cuts, whatever the event tree shows below it.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.events.intervals import positions_of_each, union_by_lane
from tb_tidy_plugin.profile.host.waiting import busiest_in_python
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import UNMARKED
from tb_tidy_plugin.system.compiled import is_usable
from tb_tidy_plugin.torchfacts.event_names import BACKWARD
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, EventTable, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct

IS_COMPILED = is_usable("tb_tidy_plugin.estimate._walk")
if IS_COMPILED:
    from tb_tidy_plugin.estimate._walk import add_up, cut

Floats = NDArray[np.float64]

RECORDED_NS = {Category.OPERATOR: 600, Category.ANNOTATION: 600, Category.PYTHON: 250, Category.RUNTIME: 300}
"""Time that the profiler takes to record one event, which a step without it does not take (docs/estimates.md)."""


class HostLanes(msgspec.Struct, frozen=True):
    """The cuts of all host threads, thread after thread, ascending within each.

    Attributes:
        time_ns: time of each cut.
        first: the first cut of each lane, and at the end the number of cuts.
        start_cut, end_cut: of each row of the profile, `ABSENT` for events of a device.
        recorded_ns: time that the profiler usually takes at each cut: half of an event's recording time comes before
            its own work, half of it after its end.
        main: the lane that the steps are marked on.
        runs_backward: mask of lanes that the autograd engine works on, other than the main one.
        rests: pauses after operators.
        burst_start, burst_end: the cuts of each stretch of events without a pause, lane after lane, of all lanes but
            the main one.
        unrecorded: multiple of `recorded_ns` that is subtracted from all time. gone: removed part of the rest.
    """

    time_ns: Times
    first: Rows
    start_cut: Numbers
    end_cut: Numbers
    recorded_ns: NDArray[np.float32]
    main: int
    runs_backward: Mask
    rests: Rests
    burst_start: Rows
    burst_end: Rows
    unrecorded: float = 0.0
    gone: float = 0.0

    def lane_of(self, cuts: Rows) -> Rows:
        """The lane of each cut."""
        lanes: Rows = np.searchsorted(self.first, cuts, side="right") - 1
        return lanes

    def cuts_of(self, lane: int) -> slice:
        return slice(int(self.first[lane]), int(self.first[lane + 1]))

    def at_or_before(self, lane: int, times: Times) -> Rows:
        """The last cut of `lane` that is not after each of `times`; its first if there is none."""
        here = self.cuts_of(lane)
        found = np.searchsorted(self.time_ns[here], times, side="right") - 1
        cuts: Rows = here.start + np.maximum(found, 0)
        return cuts

    def work_ns(self, cuts: Rows) -> Floats:
        """Time from each of `cuts`, none of which is its lane's last, to the next."""
        return self._left(self.time_ns[cuts + 1] - self.time_ns[cuts], self.recorded_ns[cuts])

    def passed_ns(self, places: Rows, cuts: Rows, left: Floats) -> Floats:
        """Time passed up to each of `places`, ascending cuts; only differences on one lane count.

        Of the time from each of `cuts`, which are ascending, to the next of them, only the part `left` passes.
        """
        if IS_COMPILED:
            found = np.empty(len(places), np.float64)
            times = (self.time_ns, self.first, self.recorded_ns, self.unrecorded, 1 - self.gone)
            add_up(*times, cuts, left, places, found)
            return found
        length_ns = np.append(np.diff(self.time_ns), 0)
        length_ns[self.first[1:] - 1] = 0
        work_ns = self._left(length_ns, self.recorded_ns)
        for first, last, part in zip(cuts[:-1].tolist(), cuts[1:].tolist(), left.tolist(), strict=True):
            work_ns[first:last] *= part
        passed_ns: Floats = np.append(0.0, np.cumsum(work_ns[:-1]))[places]
        return passed_ns

    def _left(self, length_ns: Times, recorded_ns: NDArray[np.float32]) -> Floats:
        """Remaining part of recorded time."""
        spent_ns = recorded_ns.astype(np.float64) * self.unrecorded
        return np.maximum(length_ns - spent_ns, 0.0) * (1 - self.gone)


class Rests:
    """Pauses from an operator's end to the next event, by cuts; computed on first use."""

    def __init__(
        self, first: Rows, time_ns: Times, start_cut: Numbers, end_cut: Numbers, category: NDArray[np.int8]
    ) -> None:
        """`first`, `time_ns`, `start_cut` and `end_cut` are those of the lanes, `category` that of each row."""
        self._first, self._time_ns = first, time_ns
        self._start_cut, self._end_cut, self._category = start_cut, end_cut, category

    @property
    def _operators(self) -> Rows:
        return np.flatnonzero((self._category == Category.OPERATOR) & (self._start_cut != ABSENT))

    @cached_property
    def next_start(self) -> Numbers:
        """The next cut from each cut on at which an event begins; else the lane's last."""
        return _next_starts(self._first, self._start_cut[self._start_cut != ABSENT])

    @cached_property
    def next_end(self) -> Numbers:
        """The end of the first outermost operator that begins at each cut or later; else the cut itself."""
        operators = self._operators
        starts, ends = self._start_cut[operators], self._end_cut[operators]
        end_of = np.arange(int(self._first[-1]), dtype=np.int32)
        np.maximum.at(end_of, starts, ends)
        found: Numbers = end_of[_next_starts(self._first, starts)]
        return found

    @cached_property
    def usual_ns(self) -> float:
        """Usual time in ns from an operator's end to the next event."""
        ends = self._end_cut[self._operators]
        return float(np.median(self._time_ns[self.next_start[ends]] - self._time_ns[ends])) if len(ends) else 0.0


def host_lanes(profile: Profile) -> HostLanes:
    """The lanes of a profile that has host events; the edges of steps are cuts of the main lane."""
    table = profile.table
    rows = np.flatnonzero(table.is_category((*HOST_TREE, Category.RUNTIME)) & (table.category != Category.MEMORY))
    thread = table.thread[rows]
    is_one = bool((thread == thread[0]).all())
    lanes = [
        _in_order(profile, lane) for lane in ([rows] if is_one else (rows[at] for at in positions_of_each(thread)))
    ]
    edges = np.concatenate([profile.steps.starts, profile.steps.ends])
    main = _main_lane(profile, lanes, edges)
    start_cut, end_cut = (np.full(len(table), ABSENT, np.int32) for _ in range(2))
    first, times = [0], []
    for number, lane in enumerate(lanes):
        starts, ends = table.start_ns[lane], table.end_ns[lane]
        marks = np.sort(np.clip(edges, starts[0], ends.max())) if number == main else edges[:0]
        time_ns, start_at, end_at = cut_lane(starts, ends, marks)
        start_cut[lane], end_cut[lane] = start_at + first[-1], end_at + first[-1]
        times.append(time_ns)
        first.append(first[-1] + len(time_ns))
        del starts, ends, start_at, end_at  # as long as the recording, and not wanted below
    bounds = np.array(first)
    recorded_ns = np.zeros(first[-1], np.float32)
    half_ns = np.array([RECORDED_NS.get(category, 0) / 2 for category in Category], np.float32)[table.category[rows]]
    for cuts in (start_cut[rows], end_cut[rows]):
        np.add.at(recorded_ns, cuts, half_ns)
    time_ns = times[0] if len(times) == 1 else np.concatenate(times)
    burst_start, burst_end = _bursts(lanes, main, start_cut, end_cut)
    return HostLanes(
        time_ns=time_ns,
        first=bounds,
        start_cut=start_cut,
        end_cut=end_cut,
        recorded_ns=recorded_ns,
        main=main,
        runs_backward=_run_backward(profile, lanes, main),
        rests=Rests(bounds, time_ns, start_cut, end_cut, table.category),
        burst_start=burst_start,
        burst_end=burst_end,
    )


def _in_order(profile: Profile, rows: Rows) -> Rows:
    """The events of one thread in order of start."""
    starts = profile.table.start_ns[rows]
    return rows if (starts[1:] >= starts[:-1]).all() else rows[np.argsort(starts, kind="stable")]


def _main_lane(profile: Profile, lanes: list[Rows], edges: Times) -> int:
    """The lane in which most of `edges` are times of events; of several, the one with most distinct times.

    Without marks, `edges` are those of the recording, where threads that only wait begin and end, too. Stacks show
    those: then it is the lane with most Python, or another one that runs operators.
    """
    if len(lanes) == 1:
        return 0
    table = profile.table
    if profile.steps.basis in UNMARKED:
        if (thread := busiest_in_python(profile)) != ABSENT:
            return next(number for number, lane in enumerate(lanes) if table.thread[lane[0]] == thread)
        calls = [number for number, lane in enumerate(lanes) if (table.category[lane] != Category.PYTHON).any()]
        if calls:
            return calls[_marked_lane(table, [lanes[number] for number in calls], edges)]
    return _marked_lane(table, lanes, edges)


def _marked_lane(table: EventTable, lanes: list[Rows], edges: Times) -> int:
    known, count = np.unique(edges, return_counts=True)
    joined = np.concatenate(lanes)  # rows, lane after lane
    first = np.cumsum([0, *map(len, lanes)])  # position in `joined` where each lane begins, and the end of the last one
    pairs = []  # (lane, edge) as one number
    for column in (table.start_ns, table.end_ns):
        times = column[joined]
        at = np.flatnonzero(among(times, known))  # positions of events with such a time
        lane_at = np.searchsorted(first, at, side="right") - 1
        pairs.append(lane_at * len(known) + np.searchsorted(known, times[at]))
    lane_of, edge_of = np.divmod(distinct(np.concatenate(pairs)), max(len(known), 1))  # of each pair
    found = np.bincount(lane_of, count[edge_of], len(lanes))  # number of edges in each lane
    likely = np.flatnonzero(found == found.max()).tolist()
    if len(likely) == 1:
        return likely[0]
    sizes = [len(distinct(np.concatenate([table.start_ns[lanes[at]], table.end_ns[lanes[at]]]))) for at in likely]
    return likely[sizes.index(max(sizes))]


def _run_backward(profile: Profile, lanes: list[Rows], main: int) -> Mask:
    """Mask of lanes that the autograd engine works on, other than the main one."""
    found = np.zeros(len(lanes), np.bool_)
    if len(lanes) > 1:
        is_backward = profile.table.is_named(BACKWARD.search)
        found[:] = [number != main and bool(is_backward[lane].any()) for number, lane in enumerate(lanes)]
    return found


def _bursts(lanes: list[Rows], main: int, start_cut: Numbers, end_cut: Numbers) -> tuple[Rows, Rows]:
    others = [lane for number, lane in enumerate(lanes) if number != main]
    if not others:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    number = np.repeat(np.arange(len(others)), [len(lane) for lane in others])
    rows = np.concatenate(others)
    _, starts, ends = union_by_lane(number, start_cut[rows].astype(np.int64), end_cut[rows].astype(np.int64))
    return starts, ends


def cut_lane(starts: Times, ends: Times, marks: Times) -> tuple[Times, Numbers, Numbers]:
    """The cuts of one lane: the time of each, and the cuts at which each event begins and ends.

    Args:
        starts, ends: of its events, in order of start.
        marks: further times, ascending, between the first of `starts` and the last of `ends`.
    """
    if IS_COMPILED:
        times = np.empty(2 * len(starts) + len(marks), np.int64)
        start_cut, end_cut = np.empty(len(starts), np.int32), np.empty(len(starts), np.int32)
        if (count := cut(starts, ends, marks, times, start_cut, end_cut)) != ABSENT:
            times.resize(count, refcheck=False)
            return times, start_cut, end_cut
    times = distinct(np.concatenate([starts, ends, marks]))
    return times, np.searchsorted(times, starts).astype(np.int32), np.searchsorted(times, ends).astype(np.int32)


def _next_starts(first: Rows, starts: Numbers) -> Numbers:
    """The first cut from each cut on that is one of `starts`, or the last of its lane."""
    count = int(first[-1])
    found = np.full(count, count, np.int32)
    found[starts] = starts
    found[first[1:] - 1] = first[1:] - 1
    nexts: Numbers = np.minimum.accumulate(found[::-1])[::-1]
    return nexts


def expanded(first: Rows, last: Rows) -> tuple[Rows, Rows]:
    """All numbers of the ranges `first` to `last` (exclusive), and the range that each comes from."""
    count = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(first)), count)
    numbers: Rows = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + first[owner]
    return numbers, owner
