"""The window in pieces with one cause each: the device's work, the reason why it idles, or the CPU's work.

If device work overlaps, an instant belongs to compute before communication and copies, and within a kind to the work
that began first. A gap before a piece of work is split by evidence: the time in which the work was already queued, the
time that the host needed to launch it, and the host's activity before that, instant by instant.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.ledger.host import Host
from tb_tidy_plugin.profile.events.intervals import Intervals, Pieces, covered, cut
from tb_tidy_plugin.profile.host.critical import FIRST_LAUNCH, LONG_CALL_NS
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.bounds import DeviceWork, StepSpan
from tb_tidy_plugin.torchfacts.event_names import COPY_OR_FILL, GRAPH_LAUNCH, STREAM_WAIT
from tb_tidy_plugin.trace.columns import (
    ABSENT,
    Category,
    EventTable,
    Ids,
    Mask,
    Numbers,
    Rows,
    Times,
    joined_columns,
    repeated,
    taken,
)
from tb_tidy_plugin.trace.sets import among, distinct, united
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.causes import Cause

BETWEEN_NS = 10_000
"""Longest pause between queued kernels that the device's own pace explains."""

STREAM_WAIT_NS = 200_000
LATENCY_NS, LATENCY_TIMES, MOST_LATENCY_NS = 50_000, 5, 500_000
"""Launch latency is at most the longer of these: a time in ns, and a multiple of the recording's lower quartile; and
never longer than the last one, which no way to a device takes.
"""

SYNC_NS = 5_000
"""A synchronisation that began this long before the gap was waiting for the device."""

EARLY_RETURN_NS = 5_000
"""Longest time by which the device may seem to run dry after the host's wait for it has returned."""

UNRECORDED_NS = 100_000
QUIET_NS = 500_000
"""If no thread launches anything for longer than this, the cause is host work and not slow launching."""

THINNED_GAP, LEAST_NUMBERED = 4, 100
"""The profiler numbers operators consecutively. If the usual gap between two of at least `LEAST_NUMBERED` numbers is
this large, events were removed from the file.
"""

ALLOCATION = r"Malloc|Free|HostAlloc|HostRegister|MemPool|MemCreate|MemMap|MemUnmap|MemAddress"
LAUNCHES = r"Launch(?!Host)|Memcpy|Memset"

_UNSET = ABSENT


class Segments(msgspec.Struct, frozen=True):
    """Pieces of the window, in order of time, without gaps; all arrays have one entry per piece.

    A recording has twice as many pieces as events, so numbers have the smallest possible type: cast before multiplying.
    A column with one value takes no memory (`columns.repeated`) and is read-only.

    Attributes:
        cause: position in `CAUSES`.
        work: row of the device work that runs, or that the device waits for; `ABSENT` for none.
        call: position in `Host.rows` of the host's call, `ABSENT` if nothing is recorded or it does not matter.
        thread: the host thread concerned, `ABSENT` for none.
    """

    starts: Times
    ends: Times
    cause: NDArray[np.int8]
    work: Numbers
    call: Numbers
    thread: Numbers

    def take(self, chosen: Rows | Mask) -> Segments:
        """Only the `chosen` ones."""
        at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64, copy=False)
        return Segments(*(taken(getattr(self, name), at) for name in self.__struct_fields__))

    def cut(self, edges: Times) -> Segments:
        """The same pieces, cut at `edges`."""
        return self.divided(cut(self.starts, self.ends, edges))

    def divided(self, pieces: Pieces) -> Segments:
        """The same pieces, divided into smaller ones."""
        others = (pieces.of_spans(getattr(self, name)) for name in self.__struct_fields__[2:])
        return Segments(pieces.starts, pieces.ends, *others)


def segments_of(profile: Profile, work: DeviceWork, span: StepSpan, host: Host) -> Segments:
    """The window of `span`, cut at each change of cause and at the end of each step."""
    if not span.end_ns > span.start_ns:
        none = np.empty(0, np.int64)
        return _segments(none, none, none, none, none, none)
    if not len(work.rows):
        return _on_cpu(profile, span, host)
    busy, order = _busy(profile, work, span)
    found = joined(busy, _idle(profile, work, span, host, Intervals.union(busy.starts, busy.ends), order))
    return found.cut(span.bounds)


def joined(*parts: Segments) -> Segments:
    """All pieces of `parts`, in the order of `parts`; each part is in order of time."""
    there = [part for part in parts if len(part.starts)] or [*parts[:1]]
    if len(there) == 1:
        return there[0]
    names = Segments.__struct_fields__
    found = Segments(*(joined_columns([getattr(part, name) for part in there]) for name in names))
    return found.take(np.argsort(found.starts, kind="stable"))


def _segments(
    starts: Times, ends: Times, cause: int | Rows | NDArray[np.int8], work: Ids, call: Ids, thread: Ids
) -> Segments:
    numbers = (each.astype(np.int32, copy=False) for each in (work, call, thread))
    return Segments(starts, ends, np.broadcast_to(np.asarray(cause, np.int8), starts.shape), *numbers)


# The device at work


def rank_of(profile: Profile, rows: Rows) -> Rows:
    """Number of the cause of each row of device work: compute, communication or copy."""
    table = profile.table
    is_kernel = table.category[rows] == Category.KERNEL
    communicates = named_among(table, rows[is_kernel], lambda name: kernel_kind(name) == "communication")[rows]
    return np.where(
        is_kernel, np.where(communicates, Cause.COMMUNICATION.number, Cause.COMPUTE.number), Cause.COPY.number
    )


def _busy(profile: Profile, work: DeviceWork, span: StepSpan) -> tuple[Segments, Rows]:
    """The device's busy pieces, and the cause of each entry of `work`."""
    cause = rank_of(profile, work.rows)
    starts, ends = np.maximum(work.starts, span.start_ns), np.minimum(work.ends, span.end_ns)
    taken, parts = Intervals.none(), []
    for number in (Cause.COMPUTE.number, Cause.COMMUNICATION.number, Cause.COPY.number):
        at = np.flatnonzero((cause == number) & (starts < ends))
        # Within a kind, the first work to begin owns an instant: each begins to own it when all before it are over.
        over = np.maximum.accumulate(np.append(span.start_ns, ends[at]))[:-1]
        first = np.maximum(starts[at], over)
        at, first = at[first < ends[at]], first[first < ends[at]]
        pieces = cut(first, ends[at], taken.edges)
        free = np.searchsorted(taken.edges, pieces.starts, side="right") % 2 == 0
        piece, begin, end = pieces.of_spans(at)[free], pieces.starts[free], pieces.ends[free]
        none = np.full(len(piece), ABSENT, np.int64)
        parts.append(_segments(begin, end, number, work.rows[piece], none, none))
        taken = taken.plus(Intervals.union(begin, end))
    return joined(*parts), cause


# The device idle


class _Gaps(msgspec.Struct, frozen=True):
    """Gaps in the device's work. work: what follows; launched: the end of its launch; thread: the launching thread."""

    starts: Times
    ends: Times
    work: Rows
    launch: Rows
    launched: Times
    thread: Rows
    before: Rows


def _gaps(profile: Profile, work: DeviceWork, span: StepSpan, busy: Intervals, cause: Rows, main: int) -> _Gaps:
    table = profile.table
    starts, ends = np.append(span.start_ns, busy.ends), np.append(busy.starts, span.end_ns)
    real = ends > starts
    starts, ends = starts[real], ends[real]
    order = np.lexsort((cause, work.starts))
    at = np.searchsorted(work.starts[order], ends)
    follows = np.append(order, ABSENT)[at]
    rows = np.where(follows == ABSENT, ABSENT, work.rows[follows])
    launch = np.where(follows == ABSENT, ABSENT, work.launch[follows])
    thread = np.where(launch == ABSENT, ABSENT, table.thread[launch])
    by_end = np.argsort(work.ends, kind="stable")
    before = np.append(work.rows[by_end], ABSENT)[np.searchsorted(work.ends[by_end], starts, side="right") - 1]
    before = np.where(np.searchsorted(work.ends[by_end], starts, side="right") > 0, before, ABSENT)
    launched = np.where(launch == ABSENT, ends, table.end_ns[launch])
    return _Gaps(starts, ends, rows, launch, launched, np.where(rows == ABSENT, main, thread), before)


def _idle(profile: Profile, work: DeviceWork, span: StepSpan, host: Host, busy: Intervals, cause: Rows) -> Segments:
    gaps = _gaps(profile, work, span, busy, cause, host.main)
    length, nothing = gaps.ends - gaps.starts, gaps.work == ABSENT
    unknown = ~nothing & (gaps.launch == ABSENT)
    until = np.where(unknown, gaps.starts, np.clip(gaps.launched, gaps.starts, gaps.ends))
    late = until > gaps.starts
    rest = gaps.ends - until
    usual = np.append(np.sort(rest[late & ~nothing]), 0)[int((late & ~nothing).sum()) // 4]
    latency = late & (rest <= max(LATENCY_NS, min(LATENCY_TIMES * usual, MOST_LATENCY_NS)))
    reason = _queued(profile, gaps, rest)
    reason[latency] = Cause.LAUNCH_LATENCY.number
    reason[unknown] = np.where(
        length[unknown] <= BETWEEN_NS, Cause.BETWEEN_KERNELS.number, Cause.UNRECORDED_LAUNCH.number
    )
    call = np.where(latency, host.at[gaps.launch], ABSENT)
    unexplained = reason == Cause.QUEUED_UNKNOWN.number
    if unexplained.any() and not is_thinned(profile):  # else the queued work is not known
        until[unexplained] = _would_idle_until(host, work, gaps, until)[unexplained]
        late |= until > gaps.starts
    here = gaps.ends > until
    waiting = _segments(until, gaps.ends, reason, gaps.work, call, gaps.thread).take(here)
    return joined(waiting, _host_parts(profile, host, gaps, until, np.flatnonzero(late)))


def is_thinned(profile: Profile) -> bool:
    """True if events were removed from the recording."""
    table = profile.table
    numbers = distinct(table.external_id[table.category == Category.OPERATOR].astype(np.int64))
    gaps = np.diff(numbers[numbers > 0])
    return len(gaps) >= LEAST_NUMBERED and 2 * int(np.count_nonzero(gaps >= THINNED_GAP)) > len(gaps)


def _would_idle_until(host: Host, work: DeviceWork, gaps: _Gaps, until: Times) -> Times:
    """The time in each gap until which the device would have idled without waiting: the host had not launched enough.

    That is the gap without as much time as the work takes that is queued when it ends; at least `until`. At most until
    the host's last launch, and until it waits for the device: both would have been over earlier.
    """
    idle, table, never = gaps.ends - _queued_work(work, gaps.ends), host.table, np.iinfo(np.int64).max
    calls = host.rows[host.synchronises[:-1]]
    waits = Intervals.union(table.start_ns[calls], table.end_ns[calls])
    blocked = np.append(waits.starts, never)[np.searchsorted(waits.ends, until, side="right")]
    launches = work.launch[work.launch != ABSENT]
    last = int(table.end_ns[launches].max(initial=-never))
    launched = np.where(gaps.ends > int(table.start_ns[launches].max(initial=-never)), last, never)
    found: Times = np.maximum(until, np.minimum(np.minimum(idle, blocked), launched))
    return found


def _queued_work(work: DeviceWork, times: Times) -> Times:
    """Duration of the work that is launched and has not started at each of `times`, at which no work runs, in ns."""
    length = work.ends - work.starts
    launched = np.minimum(work.launched_ns, work.starts)
    order = np.argsort(launched, kind="stable")
    given = np.append(0, np.cumsum(length[order]))[np.searchsorted(launched[order], times, side="right")]
    begun = np.append(0, np.cumsum(length))[np.searchsorted(work.starts, times, side="left")]
    queued: Times = given - begun
    return queued


def _queued(profile: Profile, gaps: _Gaps, rest: Times) -> Rows:
    """The cause of each gap before work that was already launched."""
    table = profile.table
    reason = np.full(len(rest), Cause.QUEUED_UNKNOWN.number, np.int64)
    known = gaps.launch != ABSENT
    # The first work of a recording cannot wait for another stream's: none was launched.
    first_launch = profile.device_work.launched_ns.min(initial=np.iinfo(np.int64).max)
    waits = profile.matching(STREAM_WAIT, Category.RUNTIME)
    waits = waits[np.argsort(table.end_ns[waits], kind="stable")]
    for thread in distinct(table.thread[waits]).tolist():
        times = table.end_ns[waits[table.thread[waits] == thread]]
        here = np.flatnonzero(known & (gaps.thread == thread))
        launch = table.start_ns[gaps.launch[here]]
        at = np.searchsorted(times, launch, side="right")
        near = (at > 0) & (launch - np.append(times, 0)[at - 1] < STREAM_WAIT_NS) & (launch > first_launch)
        reason[here[near]] = Cause.STREAM_WAIT.number
    is_copy = np.append(table.category, ABSENT)[gaps.work] == Category.COPY
    reason[is_copy] = Cause.COPY_SETUP.number
    in_graph = known & np.append(has(profile, GRAPH_LAUNCH), False)[gaps.launch]
    launch_before = np.append(profile.launch, ABSENT)[gaps.before]
    reason[in_graph] = np.where(launch_before == gaps.launch, Cause.INSIDE_GRAPH.number, Cause.GRAPH_START.number)[
        in_graph
    ]
    reason[rest <= BETWEEN_NS] = Cause.BETWEEN_KERNELS.number
    return reason


def has(profile: Profile, pattern: str) -> Mask:
    """Mask of the runtime calls whose name the regular expression matches."""
    table = profile.table
    return named_among(table, np.flatnonzero(table.category == Category.RUNTIME), re.compile(pattern).search)


def named_among(table: EventTable, rows: Rows, test: Callable[[str], object]) -> Mask:
    """Mask of the table's rows that share a name with any of `rows` for which `test` holds."""
    wanted = np.zeros(len(table.names), np.bool_)
    numbers = np.flatnonzero(np.bincount(table.name[rows], minlength=len(table.names)))
    wanted[numbers] = [bool(test(table.names[number])) for number in numbers.tolist()]
    found: Mask = wanted[table.name]
    return found


# The host meanwhile


def _told(host: Host, segments: Segments) -> Segments:
    """`segments` of host time, cut by their thread's activity, or by another thread's if theirs is idle or waits.

    `cause` is set inside events with a cause of their own, else it stays `_UNSET`.
    """
    for cause, when in host.everywhere:
        segments = _painted(segments, cause.number, when, segments.cause == _UNSET)
    known = {host.main, *host.others}
    segments = Segments(
        segments.starts, segments.ends, segments.cause, segments.work, segments.call,
        np.where(among(segments.thread, [*known]), segments.thread, host.main),
    )  # fmt: skip
    parts = [_asked(host, segments.take(segments.thread == thread), thread) for thread in known]
    found = [part for part in parts if len(part.starts)]
    told = joined(*found) if found else segments
    for thread in (host.main, *host.others):
        if thread == ABSENT:
            continue
        open_ = _is_open(host, told)
        ask = open_ & (told.thread != thread)
        if not ask.any():
            continue
        asked = _asked(host, told.take(ask), thread)
        answered = ~_is_open(host, asked)
        first = told.take(ask)
        kept = _asked_again(first, asked, answered)
        told = joined(told.take(~ask), kept)
    return _painted(told, Cause.HOST_COMMUNICATION.number, host.communicating, _is_open(host, told))


def _asked_again(first: Segments, asked: Segments, answered: Mask) -> Segments:
    """The pieces of `asked`; those without an answer keep their call and thread in `first`."""
    at = np.searchsorted(first.starts, asked.starts, side="right") - 1
    return Segments(
        asked.starts, asked.ends, asked.cause, asked.work,
        np.where(answered, asked.call, first.call[at]), np.where(answered, asked.thread, first.thread[at]),
    )  # fmt: skip


def _is_open(host: Host, segments: Segments) -> Mask:
    found: Mask = (segments.cause == _UNSET) & host.waits[segments.call]
    return found


def _asked(host: Host, segments: Segments, thread: int) -> Segments:
    """`segments`, cut by the activity of `thread`."""
    if thread == ABSENT or not len(segments.starts):
        return segments
    changes, innermost = host.lane(thread)
    pieces = cut(segments.starts, segments.ends, changes)
    since = np.searchsorted(changes, segments.starts, side="right") - 1
    told = Segments(
        pieces.starts,
        pieces.ends,
        pieces.of_spans(segments.cause),
        pieces.of_spans(segments.work),
        pieces.begun(np.append(innermost, np.int32(ABSENT))[since], innermost),
        repeated(thread, len(pieces.starts), np.int32),
    )
    for cause, when in host.layers(thread):
        told = _painted(told, cause.number, when, told.cause == _UNSET)
    return told


def _painted(segments: Segments, cause: int, when: Intervals, where: Mask) -> Segments:
    """`segments` with the cause inside `when`, for those in `where`."""
    if not len(when.starts) or not where.any():
        return segments
    touched = where & (when.within(segments.starts, segments.ends) > 0)
    if not touched.any():
        return segments
    parts = segments.take(touched).cut(when.edges)
    inside = when.containing(parts.starts)
    painted = Segments(
        parts.starts, parts.ends, np.where(inside, cause, parts.cause), parts.work, parts.call, parts.thread
    )
    return joined(segments.take(~touched), painted)


def _host_parts(profile: Profile, host: Host, gaps: _Gaps, until: Times, late: Rows) -> Segments:
    """The time of `late` gaps up to the launch, by the host's activity."""
    unset = np.full(len(late), _UNSET, np.int64)
    told = _told(host, _segments(gaps.starts[late], until[late], unset, gaps.work[late], unset, gaps.thread[late]))
    gap = late[np.searchsorted(gaps.starts[late], told.starts, side="right") - 1]
    quiet = _quiet(profile, host)
    # Cut where launching stops and starts again, each piece with its gap.
    pieces = cut(told.starts, told.ends, quiet.edges)
    told, gap = told.divided(pieces), pieces.of_spans(gap)
    length, begins = told.ends - told.starts, gaps.starts[gap]
    call_row = np.append(host.rows, ABSENT)[told.call]
    began = np.where(told.call == ABSENT, told.starts, profile.table.start_ns[call_row])
    free = told.cause == _UNSET
    cause = told.cause.copy()
    syncs = free & host.synchronises[told.call]
    waited = syncs & (began < begins - SYNC_NS)
    cause[syncs & ~waited & (call_row == gaps.launch[gap]) & (call_row != ABSENT)] = Cause.COPY_SETUP.number
    cause[waited] = Cause.SYNCHRONISATION.number
    cause[syncs & (cause == _UNSET) & (length > UNRECORDED_NS)] = Cause.UNRECORDED_WAIT.number
    long_ = (cause == _UNSET) & host.is_runtime[told.call] & ~syncs
    long_ &= np.where(told.call == ABSENT, 0, profile.table.durations_of(call_row)) > LONG_CALL_NS
    cause[long_] = _call_causes(profile, call_row[long_])
    silent = (cause == _UNSET) & (told.call == ABSENT) & (length > UNRECORDED_NS)
    cause[silent] = Cause.UNRECORDED_HOST.number
    cause[(cause == _UNSET) & quiet.containing(told.starts)] = Cause.HOST_WORK.number
    cause[(cause == _UNSET) & syncs] = Cause.SYNCHRONISATION.number  # the host could launch instead
    cause[cause == _UNSET] = Cause.LAUNCH_PACE.number
    parts = Segments(told.starts, told.ends, cause, told.work, told.call, told.thread)
    return _after_waits(profile, host, gaps, parts, gap)


def _quiet(profile: Profile, host: Host) -> Intervals:
    """Spans of more than `QUIET_NS` without a launch, not counting time in which a busy device blocks the host."""
    table = profile.table
    calls = profile.matching(LAUNCHES, Category.RUNTIME)
    launch = profile.launch
    calls = united(calls, launch[launch != ABSENT])
    busy = Intervals.union(table.start_ns[calls], table.end_ns[calls] + 1)
    starts, ends = np.append(table.start_ns.min(), busy.ends), np.append(busy.starts, table.end_ns.max())
    blocked = covered(table, host.rows[host.synchronises[:-1]]).intersection(profile.device_busy)
    quiet = ends - starts - np.maximum(blocked.within(starts, np.maximum(starts, ends)), 0) > QUIET_NS
    return Intervals(starts[quiet], ends[quiet])


def _call_causes(profile: Profile, rows: Ids) -> Rows:
    names = profile.table.name[rows]
    found = np.full(len(rows), Cause.RUNTIME_CALL.number, np.int64)
    patterns = ((Cause.FIRST_LAUNCH, FIRST_LAUNCH), (Cause.ALLOCATION, ALLOCATION))
    for cause, pattern in patterns:
        found[among(names, numbers_where(profile.table.names, re.compile(pattern).search))] = cause.number
    return found


def _after_waits(profile: Profile, host: Host, gaps: _Gaps, parts: Segments, gap: Rows) -> Segments:
    """Attributes slow launching after a wait for the device to that wait, while the host could have run ahead.

    The wait is that of the thread which launches next, or of the main one: a backward pass begins after its wait.
    Without its waits, the thread would be ahead by the time for which they had blocked it when the device ran dry. What
    one wait leaves of that is available after the next ones.
    """
    table = profile.table
    # Of each gap: the thread that waited when it began, for how long by then, and the position of its call.
    waiter, blocked = np.full(len(gaps.starts), ABSENT, np.int64), np.zeros(len(gaps.starts), np.int64)
    waited_in = np.full(len(gaps.starts), ABSENT, np.int64)
    for thread in (host.main, *host.others):
        here = np.flatnonzero((gaps.thread == thread) | ((thread == host.main) & (gaps.thread != ABSENT)))
        # The innermost call when the device ran dry; or just before, since clocks of host and device differ a little.
        call, earlier = (host.innermost(thread, gaps.starts[here] - ns) for ns in (1, EARLY_RETURN_NS))
        call = np.where(host.synchronises[call], call, earlier)
        stands = host.synchronises[call]
        waiter[here[stands]] = thread
        blocked[here[stands]] = gaps.starts[here[stands]] - table.start_ns[host.rows[call[stands]]]
        waited_in[here[stands]] = call[stands]
    pace = np.flatnonzero((parts.cause == Cause.LAUNCH_PACE.number) & (blocked[gap] > 0))
    if not len(pace):
        return parts
    length = parts.ends[pace] - parts.starts[pace]
    take = np.zeros(len(pace), np.int64)
    for thread in distinct(waiter[gap[pace]]).tolist():
        here = np.flatnonzero(waiter[gap[pace]] == thread)
        of_thread = np.where(waiter == thread, blocked, 0)
        take[here] = _within(length[here], np.cumsum(of_thread)[gap[pace[here]]])
    chosen = parts.take(pace)
    sync = _segments(
        chosen.starts,
        chosen.starts + take,
        Cause.SYNCHRONISATION.number,
        chosen.work,
        waited_in[gap[pace]],
        chosen.thread,
    )
    rest = Segments(chosen.starts + take, chosen.ends, chosen.cause, chosen.work, chosen.call, chosen.thread)
    others = np.ones(len(parts.starts), np.bool_)
    others[pace] = False
    return joined(parts.take(others), sync.take(take > 0), rest.take(take < length))


def _within(amounts: Times, budget: Times) -> Times:
    """What each of `amounts` can take from a budget that grows: `budget` is all that was there up to each of them."""
    wanted = np.cumsum(amounts)
    # All that is taken up to each: as much as is wanted after the last moment at which nothing was left.
    taken = wanted + np.minimum(np.minimum.accumulate(budget - wanted), 0)
    return np.diff(taken, prepend=0)


# No device


def _on_cpu(profile: Profile, span: StepSpan, host: Host) -> Segments:
    """Activity of the thread that the step waits for."""
    bounds = distinct(np.concatenate([[span.start_ns], span.bounds, [span.end_ns]]))
    bounds = bounds[(bounds >= span.start_ns) & (bounds <= span.end_ns)]
    none = repeated(ABSENT, len(bounds) - 1, np.int32)
    told = _told(host, _segments(bounds[:-1], bounds[1:], _UNSET, none, none, repeated(host.main, len(none), np.int32)))
    host.forget_lanes()
    cause, is_silent = told.cause.copy(), (told.call == ABSENT) & (told.ends - told.starts > UNRECORDED_NS)
    cause[(cause == _UNSET) & host.synchronises[told.call]] = Cause.SYNCHRONISATION.number
    calls = np.flatnonzero((cause == _UNSET) & host.is_runtime[told.call])
    rows = host.rows[told.call[calls]]
    is_long = ~has(profile, COPY_OR_FILL)[rows] & (profile.table.durations_of(rows) > LONG_CALL_NS)
    cause[calls[is_long]] = _call_causes(profile, rows[is_long])
    cause[(cause == _UNSET) & is_silent] = Cause.UNRECORDED_HOST.number
    cause[cause == _UNSET] = Cause.CPU.number
    return Segments(told.starts, told.ends, cause, told.work, told.call, told.thread)
