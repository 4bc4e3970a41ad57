"""The dependency graph of a recording: host threads and device streams as lanes, and the waits between them.

Time on a host lane is a sum between two waits, so the graph needs no nodes for it: only waits and the activities of
devices are visited in order, which keeps a replay short however much the host did.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.estimate.device import Activities, activities_of
from tb_tidy_plugin.estimate.host import Floats, HostLanes, host_lanes
from tb_tidy_plugin.estimate.waits import Wait, unexplained_waits, waits_of
from tb_tidy_plugin.profile.events.intervals import covered
from tb_tidy_plugin.profile.host.critical import clipped_to_steps
from tb_tidy_plugin.profile.host.waiting import work_end_ns
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import united


class Graph(msgspec.Struct, frozen=True):
    """The dependencies of one profile, as arrays.

    A place is a cut of a host lane at which something waits, begins or ends. It belongs to an epoch, which is the
    number of the last wait before it on that lane, or of the lane's beginning (the first numbers, one per lane). Waits
    are numbered after those, in the order in which they ended.

    Attributes:
        profile: its source.
        host, device: the lanes.
        places, place_ns: the cuts, ascending, and their times. All other fields name places by their position here.
        lane_place: the beginning of each lane.
        waits, wait_for_device: in order; True for those that a fix can remove.
        wait_begin, wait_end, wait_own_ns, wait_epoch: places of each wait, its thread's own time in it, and the epoch
            that it begins in.
        wait_thread, wait_thread_epoch, wait_thread_after_ns: the place on another lane that it waits for; `ABSENT`.
        wait_before: number of activities that began before each wait ended.
        launch, launch_epoch: of each activity; `ABSENT`, and unused, if its launch is unknown.
        step_places, step_epochs: start and end of the steps.
        horizon_work: the activities that were launched until then.
        foreign: host rows whose parent is on another thread, ascending.
        unexplained: share of the steps in which no device works and one waits for something that the trace lacks.
    """

    profile: Profile
    host: HostLanes
    device: Activities
    places: Rows
    place_ns: Times
    lane_place: Rows
    waits: tuple[Wait, ...]
    wait_for_device: Mask
    wait_begin: Rows
    wait_end: Rows
    wait_own_ns: Floats
    wait_epoch: Rows
    wait_thread: Rows
    wait_thread_epoch: Rows
    wait_thread_after_ns: Floats
    wait_before: Rows
    launch: Rows
    launch_epoch: Rows
    step_places: tuple[Rows, Rows]
    step_epochs: tuple[Rows, Rows]
    horizon_work: Mask
    foreign: Rows
    unexplained: float

    def without_recording(self, scale: float = 1.0, faults_ns: Floats | None = None) -> Graph:
        """The graph without the time that the profiler takes to record each event, `scale` times the usual.

        Also subtracts `faults_ns`, in ns by cuts: page faults that only recorded steps have.
        """
        if faults_ns is None:
            return replace(self, host=replace(self.host, unrecorded=scale))
        spent_ns = (faults_ns + self.host.recorded_ns * scale).astype(np.float32)
        return replace(self, host=replace(self.host, recorded_ns=spent_ns, unrecorded=1.0))

    def faster(self, part: float) -> Graph:
        """The graph without this part of all host time, whatever it is spent on."""
        return replace(self, host=replace(self.host, gone=part))

    @property
    def recorded_ns(self) -> Floats:
        """Duration of each step as recorded; without marks until all work is done, which an idle thread may outlast."""
        steps = self.profile.steps
        if steps.basis != "whole_trace":
            return (steps.ends - steps.starts).astype(np.float64)
        done_ns = self.device.end_ns[self.horizon_work].max(initial=self.place_ns[self.step_places[1][-1]])
        return np.array([done_ns - steps.items[0].start_ns], np.float64)


def graph_of(profile: Profile) -> Graph | None:
    """The graph of a profile; None if it cannot be replayed, because it has no steps or no time in them."""
    table = profile.table
    has_host = bool((table.is_category((*HOST_TREE, Category.RUNTIME)) & (table.category != Category.MEMORY)).any())
    if not has_host or not profile.steps.median_ns:
        return None
    host = host_lanes(profile)
    device = activities_of(profile, host)
    waits = waits_of(profile, host, device)
    epochs = _Epochs(host, waits)
    begin = np.maximum(_column([wait.begin for wait in waits]), epochs.previous_end)
    end = _column([wait.end for wait in waits])
    thread = _column([wait.thread_cut for wait in waits])
    has_no_steps = profile.steps.basis == "whole_trace"
    ends_ns = np.array([_work_end_ns(profile, host, device)]) if has_no_steps else profile.steps.ends
    step_cuts = [host.at_or_before(host.main, times) for times in (profile.steps.starts, ends_ns)]
    awaited = thread[thread != ABSENT]
    launches = device.launch_cut[device.launch_cut != ABSENT]
    # The pace after a place that another thread waits for is also needed, up to the next cut.
    paced = np.minimum(awaited, len(host.time_ns) - 2)
    places = united(host.first[:-1], begin, end, awaited, paced, paced + 1, launches, *step_cuts)

    def place(cuts: Rows) -> Rows:
        return np.where(cuts == ABSENT, ABSENT, np.searchsorted(places, cuts))

    last_ns = profile.steps.items[-1].end_ns
    return Graph(
        profile=profile,
        host=host,
        device=device,
        places=places,
        place_ns=host.time_ns[places],
        lane_place=place(host.first[:-1]),
        waits=tuple(waits),
        wait_for_device=np.array([wait.for_device for wait in waits], np.bool_),
        wait_begin=place(begin),
        wait_end=place(end),
        wait_own_ns=np.array([wait.own_ns for wait in waits], np.float64),
        wait_epoch=epochs.previous,
        wait_thread=place(thread),
        wait_thread_epoch=epochs.at(thread),
        wait_thread_after_ns=np.array([wait.after_thread_ns for wait in waits], np.float64),
        wait_before=np.searchsorted(device.start_ns, host.time_ns[end]),
        launch=place(device.launch_cut),
        launch_epoch=epochs.at(device.launch_cut),
        step_places=(place(step_cuts[0]), place(step_cuts[1])),
        step_epochs=(epochs.at(step_cuts[0]), epochs.at(step_cuts[1])),
        horizon_work=(device.launched_ns < last_ns) | has_no_steps,
        foreign=_foreign(profile),
        unexplained=_unexplained(profile, host, device, waits),
    )


def _work_end_ns(profile: Profile, host: HostLanes, device: Activities) -> int:
    """Time until which the main thread works in a recording without steps; its end, unless devices work for longer.

    Devices that are not done hold a step up, and a host that only waits then must not hide that.
    """
    end_ns = profile.steps.items[-1].end_ns
    rows = np.flatnonzero(host.lane_of(host.start_cut.astype(np.int64)) == host.main)
    worked_ns = work_end_ns(profile, rows[host.start_cut[rows] != ABSENT])
    return worked_ns if int(device.end_ns.max(initial=0)) > worked_ns else end_ns


def _column(numbers: Sequence[int]) -> Rows:
    return np.array(numbers, np.int64)


class _Epochs:
    """The wait that each place of a host lane comes after."""

    def __init__(self, host: HostLanes, waits: Sequence[Wait]) -> None:
        self._host, self._lanes = host, len(host.first) - 1
        lane = _column([wait.lane for wait in waits])
        end = _column([wait.end for wait in waits])
        order = np.argsort(lane, kind="stable")
        before = np.append(ABSENT, order)[: len(order)]
        is_first = np.diff(lane[order], prepend=ABSENT) != 0
        self.previous = np.zeros(len(waits), np.int64)
        self.previous[order] = np.where(is_first, lane[order], before + self._lanes)
        self.previous_end = np.zeros(len(waits), np.int64)
        self.previous_end[order] = np.where(is_first, host.first[lane[order]], end[before])
        self._by_end = np.argsort(end, kind="stable")  # cuts are numbered lane by lane
        self._ends = end[self._by_end]

    def at(self, cuts: Rows) -> Rows:
        """The epoch of each of `cuts`; 0 for absent ones."""
        lane = self._host.lane_of(cuts)
        at = np.searchsorted(self._ends, cuts, side="right") - 1
        is_here = np.append(self._ends, ABSENT)[at] >= self._host.first[lane]
        found = np.where(is_here, np.append(self._by_end, ABSENT)[at] + self._lanes, lane)
        return np.where(cuts == ABSENT, 0, found)


def _foreign(profile: Profile) -> Rows:
    """Operators of the backward pass that the tree hangs below a frame of the thread that started it."""
    parent, thread = profile.tree.parent, profile.table.thread[: profile.tree.size]
    return np.flatnonzero((thread != thread[parent]) & (parent != ABSENT))


def _unexplained(profile: Profile, host: HostLanes, device: Activities, waits: Sequence[Wait]) -> float:
    lost = device.unexplained.minus(profile.device_busy)
    lost = clipped_to_steps(profile, lost.plus(covered(profile.table, unexplained_waits(profile, waits, host))))
    total_ns = profile.step_time.total_ns
    return min(lost.total_ns / total_ns, 1.0) if total_ns else 0.0
