"""Device activities in the order in which they began, and their dependencies.

An activity starts when it has been launched, when its stream is free and when the stream that it was told to wait for
is. A short remainder is the time that hardware takes; no trace shows what else an activity waited for (peers of a
collective, the middle of a graph), so that time stays as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.estimate.host import Floats, HostLanes
from tb_tidy_plugin.estimate.named import BY_STREAM, named_waits
from tb_tidy_plugin.profile.events.intervals import Intervals, positions_of_each
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import STREAM_WAIT
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, without

EXPLAINED_NS = 25_000
"""Most time that an activity takes to begin after what it waits for: launches take 3 to 10 µs on the recorded devices,
and waiting for another stream 2 to 7 µs with CUDA, 15 to 20 µs with HIP.
"""

LEAST_UNRELATED = 0.05
"""Least part of the time since its launch that an unexplained wait takes if it has nothing to do with the end of the
known work before it. Of waits that end at random, one in twenty ends sooner after that.
"""

_LONG_NS = 10 * EXPLAINED_NS
"""Least duration of an activity that is unlikely to end by chance just before another begins."""

CLOCKS_NS = 2_000
"""Most difference of the clocks of host and device after alignment."""

_LONG_AGO = np.iinfo(np.int64).min // 2

MOST_SKEW_NS = 10_000_000
"""Activities that begin earlier than this before their launch were joined to the wrong one."""

MOST_STREAMS = 128
"""Most streams of one device that may wait for each other; for several devices, as many fewer as give as many pairs.
Real jobs have a few.
"""


class Activities(msgspec.Struct, frozen=True):
    """Device work in order of start, on the host's clock; one entry each.

    Attributes:
        row: in the profile. start_ns, end_ns: on the host's clock, to which the device's has been shifted.
        stream: number of its (device, stream). launch_cut: cut of its launch, `ABSENT` if unknown.
        launched_ns: time of the launch; its start if that is unknown.
        after_launch_ns: least time from its launch to its start; from time 0 if no launch is known.
        has_launch_bound: True if `after_launch_ns` applies at all.
        after_stream_ns: time after all earlier work of its stream; negative if it ran beside some of that.
        other, after_other_ns: the activity of another stream that it waits for, and the time after that.
        unexplained: spans in which activities waited for something that the trace does not name.
    """

    row: Rows
    start_ns: Times
    end_ns: Times
    stream: Rows
    launch_cut: Rows
    launched_ns: Times
    after_launch_ns: Floats
    has_launch_bound: Mask
    after_stream_ns: Floats
    other: Rows
    after_other_ns: Floats
    unexplained: Intervals

    def __len__(self) -> int:
        return len(self.row)


class _Order(msgspec.Struct, frozen=True):
    """Activities before the reasons for their starts are known."""

    row: Rows
    start_ns: Times
    end_ns: Times
    device: Rows
    stream: Rows
    launch_cut: Rows
    launched_ns: Times


def activities_of(profile: Profile, host: HostLanes) -> Activities:
    """The device work of `profile`, bounded by what it waited for."""
    order = _ordered(profile, host)
    free_ns = _free_since(order)
    other = _other_streams(profile, host, order, np.maximum(free_ns, order.launched_ns))
    other_end_ns = np.where(other == ABSENT, _LONG_AGO, order.end_ns[other])
    has_launch = order.launch_cut != ABSENT
    took_ns = order.start_ns - order.launched_ns
    least_ns = np.minimum(took_ns, _latency(took_ns[has_launch & (free_ns <= order.launched_ns) & (other == ABSENT)]))
    ready_ns = np.where(has_launch, order.launched_ns + least_ns, _LONG_AGO)
    known_ns = np.maximum(np.maximum(ready_ns, free_ns), other_end_ns)
    is_first = known_ns == _LONG_AGO
    rest_ns = np.where(is_first, 0, np.maximum(order.start_ns - known_ns, 0))
    # Work that waited for something unknown keeps its distance from its launch, all other from what it waited for. An
    # unknown event hardly comes by chance just after a long wait for known work.
    is_unrelated = rest_ns > LEAST_UNRELATED * (order.start_ns - order.launched_ns)
    is_long = (rest_ns > EXPLAINED_NS) & has_launch & is_unrelated
    after_ns = np.where(is_long, 0, rest_ns)
    return Activities(
        row=order.row,
        start_ns=order.start_ns,
        end_ns=order.end_ns,
        stream=order.stream,
        launch_cut=order.launch_cut,
        launched_ns=order.launched_ns,
        after_launch_ns=_exact(np.where(is_first, order.start_ns, np.where(is_long, took_ns, least_ns + rest_ns))),
        has_launch_bound=has_launch | is_first,
        after_stream_ns=_exact(np.minimum(order.start_ns - free_ns, after_ns)),
        other=other,
        after_other_ns=_exact(np.minimum(order.start_ns - other_end_ns, after_ns)),
        unexplained=Intervals.union(
            (order.start_ns - rest_ns)[rest_ns > EXPLAINED_NS], order.start_ns[rest_ns > EXPLAINED_NS]
        ),
    )


def _exact(times: Times) -> Floats:
    """Times as float64, in which times of a recording are exact."""
    return times.astype(np.float64)


def _ordered(profile: Profile, host: HostLanes) -> _Order:
    table = profile.table
    row = np.flatnonzero(table.is_category(DEVICE_WORK))
    launch = profile.launch[row]
    early_ns = np.where(launch == ABSENT, 0, table.start_ns[launch] - table.start_ns[row])
    launch[(early_ns > MOST_SKEW_NS) | (host.start_cut[launch] == ABSENT)] = ABSENT
    shift_ns = np.zeros(len(row), np.int64)
    for device in distinct(table.device[row]).tolist():
        here = table.device[row] == device
        shift_ns[here] = max(int(early_ns[here & (launch != ABSENT)].max(initial=0)), 0)
    start_ns, end_ns = table.start_ns[row] + shift_ns, table.end_ns[row] + shift_ns
    order = np.lexsort((row, start_ns))
    lanes = np.stack([table.device[row].astype(np.int64), table.stream[row]])
    _, stream = np.unique(lanes, axis=1, return_inverse=True)
    row, launch = row[order], launch[order]
    return _Order(
        row=row,
        start_ns=start_ns[order],
        end_ns=end_ns[order],
        device=table.device[row].astype(np.int64),
        stream=stream.reshape(-1)[order],
        launch_cut=np.where(launch == ABSENT, ABSENT, host.start_cut[launch]),
        launched_ns=np.where(launch == ABSENT, start_ns[order], table.start_ns[launch]),
    )


def _free_since(order: _Order) -> Times:
    """End of all earlier work of each activity's stream; far in the past for the first."""
    free_ns = np.full(len(order.row), _LONG_AGO, np.int64)
    for here in positions_of_each(order.stream):
        free_ns[here[1:]] = np.maximum.accumulate(order.end_ns[here])[:-1]
    return free_ns


def _latency(idle_ns: Times) -> int:
    """Usual time that a launch on an idle stream takes."""
    return min(int(np.median(idle_ns)), EXPLAINED_NS) if len(idle_ns) else 0


def _other_streams(profile: Profile, host: HostLanes, order: _Order, ready_ns: Times) -> Rows:
    """The last activity of another stream that each activity waited for, `ABSENT` for none.

    A stream is told to wait by a call between two launches. Few recordings name the streams of these calls: otherwise
    the launch that follows waits for everything launched before on other streams, as far as that was done when it
    began.
    If such calls are not recorded, work that began late is assumed to wait for long work that ended just before; within
    a graph, and without a launch, for any.
    """
    found = np.full(len(order.row), ABSENT, np.int64)
    if len(distinct(order.stream)) < 2:
        return found
    named = named_waits(profile, BY_STREAM, order)
    is_named = (named.waiting != ABSENT) & (order.end_ns[named.awaited] <= order.start_ns[named.waiting] + CLOCKS_NS)
    told, blind = _told_to_wait(profile, host, order, named.call), _blind(order)
    late = order.start_ns - ready_ns > EXPLAINED_NS
    late[named.waiting[is_named]] = False
    for streams in _by_device(order):
        lines = [_Line(order, here) for here in streams]
        for mine in streams:
            here = mine[told[mine] | late[mine]]
            for line, other in zip(lines, streams, strict=True) if len(here) else ():
                if other is mine:
                    continue
                last, ended = line.last_launched(here), line.just_ended(here)
                any_ended = told[here] | blind[here] | (order.end_ns[ended] - order.start_ns[ended] >= _LONG_NS)
                told_last = np.where(told[here], last, ABSENT)
                awaited = np.where(told_last != ABSENT, told_last, np.where(any_ended, ended, ABSENT))
                found[here] = _later(order, found[here], awaited)
    waiting, awaited = named.waiting[is_named], named.awaited[is_named]
    found[waiting] = _later(order, found[waiting], awaited)  # of several that it waits for, the last one to end counts
    found[found >= np.arange(len(found))] = ABSENT
    return found


def _told_to_wait(profile: Profile, host: HostLanes, order: _Order, named: Rows) -> Mask:
    """Mask of activities that calls not in `named` told to wait, since the launch before on their thread."""
    told = np.zeros(len(order.row), np.bool_)
    calls = without(profile.matching(STREAM_WAIT, Category.RUNTIME), named)
    calls = np.sort(host.start_cut[calls])
    launched = np.flatnonzero(order.launch_cut != ABSENT)
    launched = launched[np.argsort(order.launch_cut[launched], kind="stable")]
    cuts = order.launch_cut[launched]
    before = np.searchsorted(calls, cuts)
    told[launched] = before > np.concatenate([[0], before[:-1]])
    # The first launch of a thread must not consider calls of another one.
    lane = host.lane_of(cuts)
    is_first = np.ones(len(lane), np.bool_)
    is_first[1:] = lane[1:] != lane[:-1]
    told[launched[is_first]] = False
    return told


def _blind(order: _Order) -> Mask:
    """Mask of activities without a known launch of their own: several of one launch, or with an unknown one."""
    _, at, count = np.unique(order.launch_cut, return_inverse=True, return_counts=True)
    blind: Mask = (count[at.reshape(-1)] > 1) | (order.launch_cut == ABSENT)
    return blind


def _by_device(order: _Order) -> Iterator[list[Rows]]:
    """The activities of each stream, device by device: those with few streams, while their number is small."""
    left = MOST_STREAMS * MOST_STREAMS  # pairs of streams to compare
    for device in positions_of_each(order.device):
        streams = [device[here] for here in positions_of_each(order.stream[device])]
        if len(streams) <= MOST_STREAMS and len(streams) ** 2 <= left:
            left -= len(streams) ** 2
            yield streams


class _Line:
    """The activities of one stream, by launch and by end."""

    def __init__(self, order: _Order, here: Rows) -> None:
        self._order = order
        self._by_launch = here[np.argsort(order.launched_ns[here], kind="stable")]
        self._by_end = here[np.argsort(order.end_ns[here], kind="stable")]
        self._launched_ns, self._end_ns = order.launched_ns[self._by_launch], order.end_ns[self._by_end]

    def last_launched(self, others: Rows) -> Rows:
        """The last one that was launched before each of `others`, if that was done when the other began."""
        order = self._order
        at = np.searchsorted(self._launched_ns, order.launched_ns[others]) - 1
        last = np.where(at >= 0, self._by_launch[at], ABSENT)
        return np.where(order.end_ns[last] <= order.start_ns[others] + CLOCKS_NS, last, ABSENT)

    def just_ended(self, others: Rows) -> Rows:
        """The last one that ended before each of `others` began, if that was just before."""
        order = self._order
        at = np.searchsorted(self._end_ns, order.start_ns[others], side="right") - 1
        ended = np.where(at >= 0, self._by_end[at], ABSENT)
        return np.where(order.start_ns[others] - order.end_ns[ended] <= EXPLAINED_NS, ended, ABSENT)


def _later(order: _Order, one: Rows, two: Rows) -> Rows:
    """The activity of each pair that ends later; `ABSENT` counts as none."""
    takes_two = (two != ABSENT) & ((one == ABSENT) | (order.end_ns[two] > order.end_ns[one]))
    return np.where(takes_two, two, one)
