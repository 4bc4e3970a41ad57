"""Waits of host threads for a device or for another thread.

Each wait ends at a cut, no earlier than the thread's own time allows and no earlier than what it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from tb_tidy_plugin.estimate.device import CLOCKS_NS, EXPLAINED_NS, Activities
from tb_tidy_plugin.estimate.host import HostLanes
from tb_tidy_plugin.estimate.named import BY_HOST, named_waits
from tb_tidy_plugin.profile.debug_modes import blocking_launches
from tb_tidy_plugin.profile.events.intervals import positions_of_each
from tb_tidy_plugin.profile.host.critical import FULL_QUEUE
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import COPY_OR_FILL, KERNEL_LAUNCH, SYNCHRONISATION
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import among, united, without

COINCIDENCE_NS = 20_000
"""A wait that ends this soon after an activity, while its stream goes on, waited for that one."""

LONG_LAUNCH_NS = 100_000


class Wait(msgspec.Struct, frozen=True):
    """One wait of a host thread.

    Attributes:
        lane, begin, end: its place, as cuts. A wait without duration meets another one that ends there.
        own_ns: the thread's own time there.
        activities: the activities it waits for, by number, and the time after each one's end at which it continues.
        thread_cut, after_thread_ns: the cut of another lane that it waits for, and the time after that; else `ABSENT`.
        for_device: True if it waits for a device, so that a fix can remove the wait.
    """

    lane: int
    begin: int
    end: int
    own_ns: float
    activities: tuple[tuple[int, float], ...] = ()
    thread_cut: int = ABSENT
    after_thread_ns: float = 0.0
    for_device: bool = False


def waits_of(profile: Profile, host: HostLanes, device: Activities) -> list[Wait]:
    """All waits, in the order in which they ended."""
    found = [*_joins(host), *_forks(host)]
    if len(device):
        found += [*_for_devices(profile, host, device)]
    # Of waits that end together, those for devices end first, then those for threads, and then other threads start.
    rank = {True: 0, False: 1}
    return sorted(found, key=lambda wait: (host.time_ns[wait.end], rank[wait.for_device], wait.lane != host.main))


# Threads


def _parts(host: HostLanes) -> tuple[Rows, Rows, Rows]:
    """Stretches of work of all other lanes: the lane of each, and its first and last cut.

    While a lane rests in between, the main thread goes on; if that does nothing that is recorded, the rest is the
    lane's own.
    """
    starts, ends = host.burst_start, host.burst_end
    lane, main = host.lane_of(starts), host.time_ns[host.cuts_of(host.main)]
    before = np.searchsorted(main, host.time_ns[starts], side="right")
    rested = np.append(0, np.searchsorted(main, host.time_ns[ends], side="right"))[: len(starts)]
    begins_lane = np.diff(lane, prepend=ABSENT) != 0
    is_first = (before > np.where(begins_lane, 0, rested)) & (before > 0)
    first = np.flatnonzero(is_first)
    # Each goes on until the next one begins, or its lane ends.
    next_first = np.append(first[1:], len(starts))
    end_of_lane = np.searchsorted(lane, lane[first], side="right")
    return lane[first], starts[first], ends[np.minimum(next_first, end_of_lane) - 1]


def _forks(host: HostLanes) -> Iterator[Wait]:
    """A thread begins a stretch of work when the main thread has come to where it was then."""
    lanes, cuts, _ = _parts(host)
    main_cuts = host.at_or_before(host.main, host.time_ns[cuts])
    after = host.time_ns[cuts] - host.time_ns[main_cuts]
    begins = cuts == host.first[lanes]  # what came before it is not recorded, and not a bound
    columns = (lanes, cuts, main_cuts, after, begins)
    for lane, cut, main_cut, after_ns, is_first in zip(*(column.tolist() for column in columns), strict=True):
        own_ns = -np.inf if is_first else 0.0
        yield Wait(lane, cut if is_first else cut - 1, cut, own_ns, (), main_cut, float(after_ns))


def _joins(host: HostLanes) -> Iterator[Wait]:
    """The main thread does nothing itself while a whole stretch of the backward pass runs on another thread."""
    whole: dict[int, list[tuple[int, int, int]]] = {}
    lanes, first, last = _parts(host)
    starts, ends = host.time_ns[first], host.time_ns[last]
    segments = host.at_or_before(host.main, starts)
    nexts = np.minimum(segments + 1, host.cuts_of(host.main).stop - 1)
    inside = np.flatnonzero(host.runs_backward[lanes] & (host.time_ns[nexts] >= ends))
    for at in inside.tolist():
        whole.setdefault(int(segments[at]), []).append((int(ends[at]), int(last[at]), int(starts[at])))
    for segment, parts in whole.items():
        end = segment + 1
        begin_ns, end_ns = int(host.time_ns[segment]), int(host.time_ns[end])
        away_ns = max(part[0] for part in parts) - min(part[2] for part in parts)
        for at, (part_end_ns, cut, _) in enumerate(sorted(parts)):
            own_ns = 0.0 if at else float(end_ns - begin_ns - away_ns)
            yield Wait(host.main, end if at else segment, end, own_ns, (), cut, float(end_ns - part_end_ns))


# Devices


def _for_devices(profile: Profile, host: HostLanes, device: Activities) -> Iterator[Wait]:
    table = profile.table
    awaited: dict[int, list[int]] = {}
    for row, number in (*_synchronised(profile, device), *_own_work(profile, device), *_queued(profile, device)):
        awaited.setdefault(row, []).append(number)
    for row, numbers in awaited.items():
        begin, end = int(host.start_cut[row]), int(host.end_cut[row])
        if begin in {ABSENT, end}:
            continue
        begin_ns, end_ns = int(table.start_ns[row]), int(table.end_ns[row])
        done_ns = int(device.end_ns[numbers].max())
        binds = done_ns > begin_ns
        after_ns = end_ns - done_ns if binds else 0  # negative by the difference of the clocks
        own_ns = max(after_ns, 0) if binds else end_ns - begin_ns
        yield Wait(
            lane=int(host.lane_of(np.array([begin]))[0]),
            begin=begin,
            end=end,
            own_ns=float(min(own_ns, end_ns - begin_ns)),
            activities=tuple((number, float(after_ns)) for number in sorted(set(numbers))),
            for_device=True,
        )


def _synchronised(profile: Profile, device: Activities) -> Iterator[tuple[int, int]]:
    """Calls that wait, with the last activity of each stream that was done by their end.

    Work launched before on a stream that went on is not waited for, except what ended together with the wait. Few
    recordings name what is waited for.
    """
    table = profile.table
    named = named_waits(profile, BY_HOST, device)
    is_named = device.end_ns[named.awaited] <= table.end_ns[named.call] + CLOCKS_NS
    is_named &= device.start_ns[named.awaited] < table.end_ns[named.call]
    yield from zip(named.call[is_named].tolist(), named.awaited[is_named].tolist(), strict=True)
    calls = without(profile.matching(SYNCHRONISATION.pattern, Category.RUNTIME), named.call[is_named])
    begin, end = table.start_ns[calls], table.end_ns[calls]
    for of_stream in positions_of_each(device.stream):
        ours = of_stream[np.argsort(device.launched_ns[of_stream], kind="stable")]
        launched = np.searchsorted(device.launched_ns[ours], begin)
        reach = np.maximum.accumulate(device.end_ns[ours])
        begun = np.searchsorted(np.maximum.accumulate(device.start_ns[ours]), end)
        done = np.minimum(launched, np.searchsorted(reach, end + CLOCKS_NS, side="right"))
        done = np.minimum(done, begun)  # nothing waits for work that begins after its end
        all_done = (done == launched) & (done > 0)
        some_done = (done > 0) & (end - reach[done - 1] <= COINCIDENCE_NS)
        for at in np.flatnonzero(all_done | some_done).tolist():
            yield int(calls[at]), int(ours[done[at] - 1])


def _own_work(profile: Profile, device: Activities) -> Iterator[tuple[int, int]]:
    """Copies that return when they are done, and blocking launches."""
    table, launch = profile.table, profile.launch[device.row]
    blocking = united(profile.matching(COPY_OR_FILL, Category.RUNTIME), blocking_launches(profile))
    ended = among(launch, blocking) & (device.launch_cut != ABSENT)
    ended &= (device.end_ns <= table.end_ns[launch] + CLOCKS_NS) & (device.start_ns < table.end_ns[launch])
    for number in np.flatnonzero(ended).tolist():
        yield int(launch[number]), number


def _queued(profile: Profile, device: Activities) -> Iterator[tuple[int, int]]:
    """Long launches while much work is pending, with the last activity that ended before they returned."""
    table = profile.table
    calls = profile.matching(KERNEL_LAUNCH, Category.RUNTIME)
    calls = calls[table.durations_of(calls) > LONG_LAUNCH_NS]
    launched, ended = np.sort(device.launched_ns), np.argsort(device.end_ns, kind="stable")
    ends = device.end_ns[ended]
    depth = np.searchsorted(launched, table.start_ns[calls]) - np.searchsorted(ends, table.start_ns[calls])
    last = np.searchsorted(ends, table.end_ns[calls], side="right") - 1
    is_near = (last >= 0) & (table.end_ns[calls] - ends[last] <= LONG_LAUNCH_NS) & (ends[last] > table.start_ns[calls])
    for at in np.flatnonzero(is_near & (depth >= FULL_QUEUE)).tolist():
        yield int(calls[at]), int(ended[last[at]])


def unexplained_waits(profile: Profile, waits: Sequence[Wait], host: HostLanes) -> Rows:
    """Calls that wait, and for long, for something that is not recorded."""
    calls = profile.matching(SYNCHRONISATION.pattern, Category.RUNTIME)
    known = np.array([wait.begin for wait in waits if wait.for_device], np.int64)
    unknown: Rows = calls[~among(host.start_cut[calls], known)]
    return unknown[profile.table.durations_of(unknown) > EXPLAINED_NS]
