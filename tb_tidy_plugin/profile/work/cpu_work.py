"""The CPU's work: how evenly operators ran, the number of threads that issued them, and the Python code between them.

A call's CPU time is its host time without the runtime calls inside it: those wait for the device (a full launch queue,
a synchronisation), and that says nothing about the CPU. Its own CPU time also excludes the operators inside it: delays
are attributed there, so that each delay is named once.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each, union_by_lane
from tb_tidy_plugin.profile.events.nesting import HOST_CALLS, nest
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.flops import Reals, WorkEstimates
from tb_tidy_plugin.torchfacts.event_names import RECORDER_FRAMES
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Ids, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, numbered

SLOW_FACTOR = 3.0
"""Multiple of the group's median: caches and clocks alone make calls with the same inputs vary up to twofold."""
SLOW_NS = 50_000
"""Below 50 µs a call may be slow because of one interrupt or one page fault, and does not matter."""
FEW_CALLS = 5
"""The median of fewer calls is not reliable."""
_MOST_THREADS = 128
"""Most threads, busiest first, that are searched for work beside a slow call; jobs have a few."""

_ByThread: TypeAlias = tuple[Ids, Times, Times]
"""Pieces of time: the thread of each, its start and its end; thread after thread."""


class CpuGroup(msgspec.Struct, frozen=True):
    """Calls of one operator with the same input shapes.

    Attributes:
        name: without overload. shape: number in `Signatures.shapes`.
        first: row of its first call.
        calls: number of calls. total_ns: their CPU times added up.
        low_ns, median_ns, high_ns: 10th, 50th and 90th percentile of the calls' CPU time, interpolated.
        longest_ns: of the slowest call.
        slow_calls: number of them in `CpuWork.slow_calls`.
        threads: number of threads they ran on.
        flops_per_second: estimated operations by median time; None without an estimate, and for calls that took part
            in device work.
        share_of_best: this rate by the highest one of the same operator in this profile; None without a rate or if the
            operator has only one group.
    """

    name: str
    shape: int
    first: int
    calls: int
    total_ns: int
    low_ns: int
    median_ns: int
    high_ns: int
    longest_ns: int
    slow_calls: int
    threads: int
    flops_per_second: float | None
    share_of_best: float | None


class SlowCall(msgspec.Struct, frozen=True):
    """A call that took far longer than calls of its operator and shapes usually do.

    Attributes:
        row: the call. group: position of its `CpuGroup` in `CpuWork.groups`.
        own_ns: its own CPU time, without operators inside. median_ns: that of its group's calls.
        threads: number of threads that ran operators during it, including its own: more than one may have been in each
            other's way.
        is_first: True for the first call of its group, which often does one-time work: allocate, choose an algorithm.
    """

    row: int
    group: int
    own_ns: int
    median_ns: int
    threads: int
    is_first: bool

    @property
    def contended(self) -> bool:
        """True if contention explains it: other threads ran operators, and it was not the first call."""
        return self.threads > 1 and not self.is_first


class ThreadCounts(msgspec.Struct, frozen=True):
    """Number of threads inside an operator, over time.

    Attributes:
        times_ns: when the number changes. counts: the number from then on; the last one is 0.
        threads: number of threads that ran operators. most: at the same time.
        mean: over the time from the first operator's start to the last one's end. busy_mean: while any thread did.
    """

    times_ns: Times
    counts: Times
    threads: int
    most: int
    mean: float
    busy_mean: float


class CpuWork(msgspec.Struct, frozen=True):
    """The CPU's work: groups by total time, longest first, and slow calls by time lost, longest first."""

    groups: tuple[CpuGroup, ...]
    slow_calls: tuple[SlowCall, ...]
    threads: ThreadCounts


class FrameTimes(msgspec.Struct, frozen=True):
    """Python frames and their self times, without the frames, operators, annotations and runtime calls inside.

    Self time is wall time: it includes a frame's waiting (for a lock, for data).
    """

    rows: Rows
    self_ns: Times


def cpu_work_of(profile: Profile, estimates: WorkEstimates) -> CpuWork:
    """The CPU's work in a profile.

    Args:
        profile: one trace.
        estimates: its calls' estimated work.
    """
    calls = _operator_calls(profile)
    threads = _inside_operators(profile, calls)
    by_time = _Groups.of(profile, calls, cpu_time(profile)[calls])
    order = np.argsort(-by_time.sums(by_time.time_ns), kind="stable")
    slow_calls = _slow_calls(profile, _Groups.of(profile, calls, profile.nested.self_ns[calls]), threads)
    counts = np.bincount([call.group for call in slow_calls], minlength=len(order)).astype(np.int64)
    groups = _cpu_groups(profile, by_time, estimates, counts)
    moved = np.argsort(order).tolist()
    return CpuWork(
        groups=tuple(groups[at] for at in order.tolist()),
        slow_calls=tuple(replace(call, group=moved[call.group]) for call in slow_calls),
        threads=_thread_counts(threads),
    )


def recorder_frames(table: EventTable) -> Rows:
    """Python frames in which the profiler does its own work: its user's code does not run inside them."""
    return np.flatnonzero((table.category == Category.PYTHON) & table.is_named(re.compile(RECORDER_FRAMES).search))


def frame_times(profile: Profile) -> FrameTimes | None:
    """Self times of Python frames without those of the profiler's own work, None without stacks."""
    table = profile.table
    if not (table.category == Category.PYTHON).any():
        return None
    nested = nest(table, profile.plain_groups, (*HOST_CALLS, Category.PYTHON))
    frames = np.flatnonzero((table.category[nested.rows] == Category.PYTHON) & ~_of_recorder(table, nested.rows))
    return FrameTimes(nested.rows[frames], nested.self_ns[frames])


def _of_recorder(table: EventTable, rows: Rows) -> Mask:
    """Mask of the `rows` that lie inside the profiler's own frames, or are one."""
    frames, found = recorder_frames(table), np.zeros(len(rows), np.bool_)
    for thread in distinct(table.thread[frames]).tolist():
        own = frames[table.thread[frames] == thread]
        spans = Intervals.union(table.start_ns[own], table.end_ns[own])
        here = np.flatnonzero(table.thread[rows] == thread)
        found[here] = spans.containing(table.start_ns[rows[here]])
    return found


def _operator_calls(profile: Profile) -> Rows:
    """Positions of the operators among the profile's calls."""
    return np.flatnonzero(profile.table.category[profile.nested.rows] == Category.OPERATOR)


def cpu_time(profile: Profile) -> Times:
    """Host time of each call of `Profile.nested` without the runtime calls inside it."""
    nested, operators = profile.nested, profile.operators
    is_runtime = profile.table.category[nested.rows] == Category.RUNTIME
    outermost = np.zeros(len(nested), np.int64)
    runtime = np.flatnonzero(is_runtime)
    runtime = runtime[nested.outermost(runtime)]
    outermost[runtime] = operators.host_total_ns[runtime]
    inside: Times = operators.host_total_ns - nested.sums(outermost)
    return inside


class _Groups(msgspec.Struct, frozen=True):
    """Calls with the same operator and input shapes, sorted by group and time.

    Attributes:
        call: positions in `Profile.nested`. time_ns: their times.
        bounds: start of each group, and the end of the last one. shape: number of each group's shapes.
    """

    call: Rows
    time_ns: Times
    bounds: Rows
    shape: Rows

    @classmethod
    def of(cls, profile: Profile, calls: Rows, time_ns: Times) -> _Groups:
        signatures = profile.signatures
        shape = signatures.shape_number[signatures.number[calls]].astype(np.int64)
        key = profile.plain_number(profile.nested.rows[calls]) * np.int64(len(signatures.shapes)) + shape
        order = np.lexsort((time_ns, key))
        first = np.flatnonzero(np.diff(key[order], prepend=ABSENT))
        return cls(calls[order], time_ns[order], np.append(first, len(calls)), shape[order][first])

    @property
    def sizes(self) -> Rows:
        return np.diff(self.bounds)

    @property
    def number(self) -> Rows:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def quantile(self, share: float) -> Times:
        """The time that `share` of each group's calls stay below, interpolated as in `numpy.quantile`."""
        if not len(self.call):
            return np.zeros(0, np.int64)
        place = self.bounds[:-1] + share * (self.sizes - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, self.bounds[1:] - 1)
        times = self.time_ns
        return np.rint(times[low] + (place - low) * (times[high] - times[low])).astype(np.int64)

    def least(self, values: Rows) -> Rows:
        """The least of `values` among the calls of each group."""
        return np.minimum.reduceat(values, self.bounds[:-1]) if len(values) else values

    def sums(self, values: Times) -> Times:
        """The sum of `values` over the calls of each group."""
        before = np.concatenate([[0], np.cumsum(values)])
        total: Times = before[self.bounds[1:]] - before[self.bounds[:-1]]
        return total


def _slow_calls(profile: Profile, by_own: _Groups, threads: _ByThread) -> list[SlowCall]:
    """Slow calls, by time lost; empty if shapes do not distinguish calls of different size."""
    number = by_own.number
    median_ns = by_own.quantile(0.5)[number]
    has_shapes = np.array([any(shapes) for shapes in profile.signatures.shapes])[by_own.shape[number]]
    is_slow = has_shapes & (by_own.time_ns > SLOW_FACTOR * median_ns) & (by_own.time_ns >= SLOW_NS)
    chosen = np.flatnonzero(is_slow & (by_own.sizes[number] >= FEW_CALLS))
    rows = profile.nested.rows[by_own.call]
    first = by_own.least(profile.table.start_ns[rows])[number[chosen]]
    starts, ends = profile.table.start_ns[rows[chosen]], profile.table.end_ns[rows[chosen]]
    running = np.zeros(len(chosen), np.int64)
    for busy in _busiest(threads) if len(chosen) else ():
        running += busy.within(starts, ends) > 0
    columns = (rows[chosen], number[chosen], by_own.time_ns[chosen], median_ns[chosen], running, starts == first)
    found = [SlowCall(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]
    return sorted(found, key=lambda call: call.median_ns - call.own_ns)


def _cpu_groups(profile: Profile, groups: _Groups, estimates: WorkEstimates, slow_calls: Rows) -> list[CpuGroup]:
    rows = profile.nested.rows[groups.call]
    names, name = profile.plain_names, profile.plain_number(rows[groups.bounds[:-1]])
    per_second = _flops_per_second(profile, groups, estimates)
    counted = (
        groups.shape,
        groups.least(rows),
        groups.sizes,
        groups.sums(groups.time_ns),
        *(groups.quantile(share) for share in (0.1, 0.5, 0.9, 1)),
        slow_calls,
        _threads_of_groups(profile, groups),
    )
    columns = (
        [names[number] for number in name.tolist()],
        *(column.tolist() for column in counted),
        _known(per_second),
        _known(_share_of_best(name, per_second)),
    )
    return [CpuGroup(*values) for values in zip(*columns, strict=True)]


def _known(values: Reals) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _flops_per_second(profile: Profile, groups: _Groups, estimates: WorkEstimates) -> Reals:
    """Mean estimated operations by median time of each group, NaN if a call's are unknown or ran on a device."""
    flops = estimates.flops[groups.call]
    is_known = (flops > 0) & profile.operators.on_host[groups.call]
    mean = groups.sums(flops) / np.maximum(groups.sizes, 1)
    all_known = groups.sums(is_known.astype(np.int64)) == groups.sizes
    median_ns = groups.quantile(0.5)
    found = np.full(len(mean), np.nan)
    np.divide(mean * 1e9, median_ns, out=found, where=all_known & (median_ns > 0))
    return found


def _share_of_best(name: NDArray[np.int32], per_second: Reals) -> Reals:
    """Each group's rate by the highest of its operator, NaN if that has only one rate."""
    known = np.flatnonzero(~np.isnan(per_second))
    operators, number = numbered(name[known])
    best = np.zeros(len(operators))
    np.maximum.at(best, number, per_second[known])
    several = np.bincount(number, minlength=len(operators))[number] > 1
    found = np.full(len(per_second), np.nan)
    found[known[several]] = (per_second[known] / best[number])[several]
    return found


def _threads_of_groups(profile: Profile, groups: _Groups) -> Rows:
    thread = profile.table.thread[profile.nested.rows[groups.call]].astype(np.int64)
    pairs = distinct(groups.number * (int(thread.max(initial=0)) + 1) + thread)
    return np.bincount(pairs // (int(thread.max(initial=0)) + 1), minlength=len(groups.sizes))


def _inside_operators(profile: Profile, calls: Rows) -> _ByThread:
    """The time that each thread spent inside operators."""
    table = profile.table
    rows = profile.nested.rows[calls]  # all, since some end after those around them
    return union_by_lane(table.thread[rows], table.start_ns[rows], table.end_ns[rows])


def _busiest(threads: _ByThread) -> list[Intervals]:
    thread, starts, ends = threads
    times = [Intervals(starts[here], ends[here]) for here in positions_of_each(thread)]
    return sorted(times, key=lambda busy: -busy.total_ns)[:_MOST_THREADS]


def _thread_counts(threads: _ByThread) -> ThreadCounts:
    thread, starts, ends = threads
    times, number = np.unique(np.concatenate([starts, ends]), return_inverse=True)
    change = np.concatenate([np.ones(len(starts), np.int64), -np.ones(len(ends), np.int64)])
    counts = np.zeros(len(times), np.int64)
    np.add.at(counts, number.reshape(-1), change)
    counts = np.cumsum(counts)
    lengths = np.diff(times)
    running = int((lengths * counts[:-1]).sum())
    return ThreadCounts(
        times_ns=times,
        counts=counts,
        threads=len(positions_of_each(thread)),
        most=int(counts.max(initial=0)),
        mean=running / max(int(lengths.sum()), 1),
        busy_mean=running / max(int(lengths[counts[:-1] > 0].sum()), 1),
    )
