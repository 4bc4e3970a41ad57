"""The definition of the step: its marks, its start and end, and the parts of the recording that are left out.

A piece of device work belongs to the step that launched it. So a step ends when its mark on the host has ended and all
work launched until then is done, whichever is later: right if the host is slower, if the device is, and if they wait
for each other. Steps follow each other without gaps. If devices were busy with earlier work when the first mark began,
the first step begins when that is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.steps.steps import BEGINS_WORK, UNMARKED, ProfileSteps
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    DEVICE_WORK,
    HOST_TREE,
    Category,
    EventTable,
    Mask,
    Numbers,
    Rows,
    Times,
)
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.vocabulary import StepSource

LEAST_LINKED = 0.2
"""Least part of the device work with a known launch for launches to define steps."""

LEAD_NS = 1_000_000
LEAD_DONE = 0.01
LEAD_BLOCKED = 0.6
"""Gaps of more than 1 ms are trimmed while less than a hundredth of the device work is done: if the work behind a gap
was launched long before, or its launching copy blocks for this part of the gap, the device was busy with something that
is not recorded.
"""

LEAD_QUIET_NS, LEAD_QUIET = 500_000, 0.1
"""A host that gives the device nothing for longer than both, a time and a part of the gap, was not running ahead."""

DRAINS = re.compile(r"^(?:cuda|hip|cu)(?:Device|Stream|Ctx)Synchronize")
"""Calls that return when the device has done what was launched before."""

OUTSIDE = 0.01
"""Recorded time outside the steps of more than this part of theirs is stated."""

_BEFORE = np.iinfo(np.int64).min // 2
"""Launch time of work launched before the recording."""

_MOST_STEPS = 4096
"""Most steps that are distinguished; a recording with more holds the same ones again."""

_NEVER: Times = np.empty(0, np.int64)
LEAST_OF_DEVICE, LEAST_OF_RECORDING = 0.5, 0.4
"""Least parts that repeating units cover of the time in which a device works, and of the recording; else that is of
something else, such as start-up.
"""

MOST_PERIODS = 8
LEAST_PERIOD, LEAST_REPEATS, ALIKE = 8, 3, 0.95


class DeviceWork(msgspec.Struct, frozen=True):
    """Device work in order of start, one entry per piece.

    Attributes:
        rows: of the table. starts, ends: when it ran. launch: row of the launching call, `ABSENT` if unknown.
        launched_ns: time of the launch, if known or given by the order on its stream.
    """

    rows: Rows
    starts: Times
    ends: Times
    launch: Rows
    launched_ns: Times

    @property
    def is_earlier(self) -> Mask:
        """Mask of the work that was launched before the recording."""
        earlier: Mask = self.launched_ns == _BEFORE
        return earlier


class _LeftOut(msgspec.Struct, frozen=True):
    """Recorded time outside the steps: its duration, and its content, as the end of a sentence."""

    ns: int
    what: str


class StepSpan(msgspec.Struct, frozen=True):
    """The steps: boundary `i` is the start of step `i` and the end of step `i - 1`.

    Attributes:
        bounds: ascending, one more than there are steps.
        window: start and end of the time that costs and savings refer to: all steps, or without marks the recording.
        names: of each step. host_ns: length of each one's mark. main: thread of the marks, `ABSENT` if unknown.
    """

    source: StepSource
    bounds: Times
    window: tuple[int, int]
    names: tuple[str, ...]
    host_ns: Times | None
    main: int
    left_out: tuple[_LeftOut, ...]

    @property
    def start_ns(self) -> int:
        return int(self.bounds[0])

    @property
    def end_ns(self) -> int:
        return int(self.bounds[-1])


class _Marks(msgspec.Struct, frozen=True):
    source: StepSource
    names: tuple[str, ...]
    starts: Times
    ends: Times
    thread: int


def work_of(table: EventTable, launches: Rows) -> DeviceWork:
    """All device work of a table; `launches` has the row of each row's launch, `ABSENT` if unknown."""
    rows = np.flatnonzero(table.is_category(DEVICE_WORK))
    launched = np.where(launches[rows] == ABSENT, _BEFORE, table.start_ns[launches[rows]])
    order = np.lexsort((table.stream[rows], launched, -table.end_ns[rows], table.start_ns[rows]))
    rows, launched = rows[order], launched[order]
    starts, ends, launch = table.start_ns[rows], table.end_ns[rows], launches[rows]
    linked = launch != ABSENT
    if len(rows) and linked.mean() < LEAST_LINKED:
        launched = starts.copy()
    elif not linked.all():
        launched = _filled(launched, linked, starts, ends, table.device[rows], table.stream[rows])
    return DeviceWork(rows, starts, ends, launch, launched)


def _filled(launched: Times, linked: Mask, starts: Times, ends: Times, device: Numbers, stream: Times) -> Times:
    """Launch times; an unknown one is that of the piece before on the same stream.

    Work on a stream before any with a known launch was launched before the recording: a backlog. A stream without any
    known launch counts when it runs, but for what begins before the backlog of the others is done.
    """
    order = np.lexsort((np.arange(len(launched)), stream, device))
    new_stream = np.ones(len(order), np.bool_)
    new_stream[1:] = (np.diff(stream[order]) != 0) | (np.diff(device[order]) != 0)
    known = linked[order] | new_stream
    from_ = np.maximum.accumulate(np.where(known, np.arange(len(order)), 0))
    filled = np.empty_like(launched)
    filled[order] = launched[order][from_]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new_stream)
    is_known = np.bincount(number, linked)[number] > 0
    backlog_ns = max(int(starts[linked].min()), int(ends[is_known & (filled == _BEFORE)].max(initial=_BEFORE)))
    late = ~is_known & (starts >= backlog_ns)
    filled[late] = starts[late]
    return filled


def span_of(table: EventTable, steps: ProfileSteps, work: DeviceWork) -> StepSpan:
    """The bounds of `steps`, or of the whole recording if nothing marks any."""
    if steps.basis not in UNMARKED:
        names = tuple(step.name for step in steps.items)
        marks = _Marks(steps.basis, names, steps.starts, steps.ends, steps.thread)
        return _between_marks(table, work, marks) or _whole(table, work)
    whole, ends = _whole(table, work), _repeated(table, work)
    names = tuple(f"step {number}" for number in range(1, len(ends)))
    units = _between_marks(table, work, _Marks("repeating_unit", names, ends[:-1], ends[1:], ABSENT))
    if units is None:
        return whole
    length = units.end_ns - units.start_ns
    device_ns = int(work.ends.max() - work.starts.min())
    is_most = length >= max(LEAST_OF_DEVICE * device_ns, LEAST_OF_RECORDING * (whole.end_ns - whole.start_ns))
    return replace(units, window=whole.window) if is_most else whole


# A sequence that repeats


def _repeated(table: EventTable, work: DeviceWork) -> Times:
    """Ends of the longest repeating sequence on the stream with most kernels, cut where a kernel unique to it ends.

    With only one recorded step, it is a layer, so it is never combined with marks.
    """
    rows = work.rows[table.category[work.rows] == Category.KERNEL]
    if len(rows) < LEAST_PERIOD * LEAST_REPEATS:
        return _NEVER
    lane = table.device[rows].astype(np.int64) * (1 << 32) + (table.stream[rows].astype(np.int64) & 0xFFFFFFFF)
    which = np.unique(lane, return_inverse=True)[1].reshape(-1)
    every = rows[which == np.argmax(np.bincount(which))]
    rows = every[len(every) // 4 :]  # the first ones may be of a warm-up
    names = table.name[rows]
    order = np.argsort(names, kind="stable")
    same = np.diff(names[order]) == 0
    even = _even_distances(order, same)
    periods, counts = np.unique(even[(even >= LEAST_PERIOD) & (even * LEAST_REPEATS <= len(rows))], return_counts=True)
    for period in sorted(periods[np.argsort(-counts, kind="stable")][:MOST_PERIODS].tolist(), reverse=True):
        if (names[period:] == names[:-period]).mean() > ALIKE:
            once = _once_each(order, same, names, period)
            if once is not None:
                return distinct(
                    table.end_ns[every[_extended(table.name[every], once + len(every) - len(rows), period)]]
                )
    return _NEVER


def _extended(names: Rows, once: Rows, period: int) -> Rows:
    """`once` and the kernels of the same name before it, one period before the next each."""
    first = int(once[0])
    before = np.arange(first - period, -1, -period)
    same = names[before] == names[first]
    alike = int(np.argmin(np.append(same, False)))
    return np.append(before[:alike][::-1], once)


def _even_distances(order: Rows, same: Mask) -> Rows:
    """The distance of each kernel that recurs at one distance."""
    if not same.any():
        return np.empty(0, np.int64)
    distance = np.diff(order)[same]
    name = np.append(0, np.cumsum(~same))[:-1][same]
    first = np.flatnonzero(np.append(True, np.diff(name) != 0))
    least, most = np.minimum.reduceat(distance, first), np.maximum.reduceat(distance, first)
    found: Rows = least[least == most]
    return found


def _once_each(order: Rows, same: Mask, names: Rows, period: int) -> Rows | None:
    """Positions of the last kernel among those that occur once each period."""
    bounds = np.append(np.append(-1, np.flatnonzero(~same)), len(order) - 1)
    repeats, best = len(names) // period, None
    for low, high in zip((bounds[:-1] + 1).tolist(), (bounds[1:] + 1).tolist(), strict=True):
        if abs(high - low - repeats) <= 1 and high - low >= LEAST_REPEATS:
            places = order[low:high]
            if (np.diff(places) == period).mean() > ALIKE and (best is None or places[0] > best[0]):
                best = places
    return best


# Boundaries


def _between_marks(table: EventTable, work: DeviceWork, marks: _Marks) -> StepSpan | None:
    if not len(marks.starts):
        return None
    order = np.argsort(work.launched_ns, kind="stable")
    launched, done = work.launched_ns[order], np.maximum.accumulate(np.append(_BEFORE, work.ends[order]))
    first = int(marks.starts[0])
    if marks.source == "repeating_unit":  # of the device itself
        bounds = np.append(marks.starts[:1], marks.ends)
    else:
        begin = max(first, int(done[np.searchsorted(launched, first, side="left")]))
        ends = np.maximum(marks.ends, done[np.searchsorted(launched, marks.ends, side="left")])
        bounds = np.maximum.accumulate(np.append(begin, ends))
    if bounds[-1] <= bounds[0]:
        return None
    left = []
    if bounds[0] > first:
        left.append(_LeftOut(int(bounds[0]) - first, "at the start belong to work launched before the first step"))
    begin, trimmed = _lead_trimmed(table, work, int(bounds[0]), int(bounds[1]), int(bounds[-1]))
    bounds[0] = begin
    kept = np.append(True, np.diff(bounds) > 0)
    if not kept[1:].any():
        return None
    if int(kept.sum()) > _MOST_STEPS + 1:
        last = int(np.flatnonzero(kept)[_MOST_STEPS])
        left.append(_LeftOut(int(bounds[-1] - bounds[last]), f"belong to steps after the first {_MOST_STEPS:,}"))
        kept[last + 1 :] = False
    names = tuple(name for name, is_kept in zip(marks.names, kept[1:].tolist(), strict=True) if is_kept)
    host_ns = None if marks.source == "repeating_unit" else (marks.ends - marks.starts)[kept[1:]]
    left += _outside(table, work, first, int(bounds[-1]), "repeating unit" if host_ns is None else "step")
    window = (int(bounds[0]), int(bounds[kept][-1]))
    return StepSpan(marks.source, bounds[kept], window, names, host_ns, marks.thread, (*left, *trimmed))


def _recorded(table: EventTable, work: DeviceWork) -> tuple[Rows, int, int]:
    """The events of the host, and first start and last end of these and all device work."""
    host = np.flatnonzero(table.is_category((*HOST_TREE, Category.RUNTIME)))
    begin = int(min(table.start_ns[host].min(initial=np.iinfo(np.int64).max), work.starts.min(initial=1 << 62)))
    return host, begin, int(max(table.end_ns[host].max(initial=_BEFORE), work.ends.max(initial=_BEFORE)))


def _outside(table: EventTable, work: DeviceWork, first_ns: int, last_ns: int, unit: str) -> Iterator[_LeftOut]:
    """The recorded time before the first step and after the last one, where it is long enough to be missed."""
    _, begin, end = _recorded(table, work)
    least_ns = OUTSIDE * (last_ns - first_ns)
    if first_ns - begin > least_ns:
        yield _LeftOut(first_ns - begin, f"precede the first {unit}")
    if end - last_ns > least_ns:
        yield _LeftOut(end - last_ns, f"follow the last {unit}")


def _whole(table: EventTable, work: DeviceWork) -> StepSpan:
    host, begin, end = _recorded(table, work)
    left: list[_LeftOut] = []
    if begin > end:
        return StepSpan("whole_trace", np.array([0, 0], np.int64), (0, 0), ("whole trace",), None, ABSENT, ())
    if len(host) and len(work.rows):
        host_end, host_start = int(table.end_ns[host].max()), int(table.start_ns[host].min())
        if host_start > work.ends.max() or (host_end < work.starts.min() and _is_apart(table, work)):
            begin, end = int(work.starts.min()), int(work.ends.max())
            left.append(_LeftOut(host_end - host_start, "hold host events from another time than the device's"))
    begin, trimmed = _lead_trimmed(table, work, begin, end, end)
    bounds = np.array([begin, end], np.int64)
    return StepSpan("whole_trace", bounds, (begin, end), ("whole trace",), None, ABSENT, (*left, *trimmed))


def _is_apart(table: EventTable, work: DeviceWork) -> bool:
    """True if host events that end before all device work are of another time, or by another clock.

    Else a host that ended early has only launched work that runs later.
    """
    known = work.launch != ABSENT
    if known.mean() < LEAST_LINKED:
        return True
    waits = np.flatnonzero((table.category == Category.RUNTIME) & table.is_named(DRAINS.search))
    return bool((table.start_ns[waits] > table.start_ns[work.launch[known]].max()).any())


def _lead_trimmed(
    table: EventTable, work: DeviceWork, begin: int, first_end: int, end: int
) -> tuple[int, tuple[_LeftOut, ...]]:
    """Start of the window, without the time in which the device did unrecorded work."""
    inside = np.flatnonzero((work.ends > begin) & (work.starts < end))
    busy = Intervals.union(np.maximum(work.starts[inside], begin), np.minimum(work.ends[inside], end))
    if not len(busy.starts):
        return begin, ()
    gap_starts, gap_ends = np.append(begin, busy.ends[:-1]), busy.starts
    done = np.append(0, np.cumsum(busy.ends - busy.starts)[:-1])
    lead = (done < LEAD_DONE * busy.total_ns) & (gap_ends - gap_starts > LEAD_NS) & (gap_ends < first_end)
    new_begin = begin
    for start, stop in zip(gap_starts[lead].tolist(), gap_ends[lead].tolist(), strict=True):
        at = int(np.searchsorted(work.starts, stop))
        if at == len(work.rows) or work.launch[at] == ABSENT:
            continue
        launched, returned = int(table.start_ns[work.launch[at]]), int(table.end_ns[work.launch[at]])
        blocked = min(returned, stop) - max(launched, start)
        if returned < start + (stop - start) // 2 and returned < stop - LEAD_NS:
            if _runs_ahead(table, begin, stop - start, launched):
                new_begin = stop
        elif table.category[work.rows[at]] == Category.COPY and blocked > LEAD_BLOCKED * (stop - start):
            new_begin = min(returned, stop)
    if new_begin == begin:
        return begin, ()
    return new_begin, (_LeftOut(new_begin - begin, "at the start wait for work from before the recording"),)


def _runs_ahead(table: EventTable, begin: int, gap_ns: int, launched: int) -> bool:
    """True if the host may have launched work before `begin` that a device still runs in the gap.

    Not if it gave the device nothing for long, or waited until the device had done everything, before it launched the
    work behind the gap.
    """
    calls = np.flatnonzero((table.category == Category.RUNTIME) & (table.start_ns >= begin))
    gives = calls[table.is_named(BEGINS_WORK.search)[calls]]
    waits = calls[table.is_named(DRAINS.search)[calls]]
    if (table.end_ns[waits] <= launched).any():
        return False
    first = int(table.start_ns[gives].min(initial=launched))
    return first - begin <= max(LEAD_QUIET_NS, LEAD_QUIET * gap_ns)
