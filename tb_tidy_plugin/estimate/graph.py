"""The dependency graph of a recording: host threads and device streams as lanes, and the waits between them.

Time on a host lane is a sum between two waits, so the graph holds no nodes for it: only waits and the activities of
devices need to be visited in order, which keeps a replay short however much the host did.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.estimate.device import Activities, activities_of
from tb_tidy_plugin.estimate.host import Floats, HostLanes, host_lanes
from tb_tidy_plugin.estimate.waits import Wait, unexplained_waits, waits_of
from tb_tidy_plugin.profile.critical import clipped_to_steps
from tb_tidy_plugin.profile.lanes import covered
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Mask, Rows

RECORDED_NS = {Category.OPERATOR: 600.0, Category.ANNOTATION: 600.0, Category.PYTHON: 250.0, Category.RUNTIME: 300.0}
"""About what the profiler takes to record one event, which the step does not take without it (docs/estimates.md)."""


class Graph(msgspec.Struct, frozen=True):
    """The dependencies of one profile, as arrays.

    A place on a host lane is a cut and an epoch: the number of the last wait on that lane up to there, or of the lane's
    beginning (the first numbers, one per lane). Waits are numbered behind those, in the order in which they ended.

    Attributes:
        profile: what it was made from.
        host, device: the lanes.
        waits, wait_for_device: in order; which of them a fix can take away.
        wait_begin, wait_end, wait_own_ns, wait_epoch: of each wait its cuts, its thread's own time in it, and the epoch
            that it begins in.
        wait_thread, wait_thread_epoch, wait_thread_after_ns: the place on another lane that it waits for; `ABSENT`.
        wait_before: how many activities began before each wait ended.
        launch_epoch: of each activity's launch; unused where it has none.
        horizon_cut, horizon_epoch: where the last step ends.
        horizon_work: the activities that were launched until then.
        foreign: host rows whose parent is on another thread, ascending.
        unexplained: share of the steps in which no device works and one waits for something that the trace lacks.
    """

    profile: Profile
    host: HostLanes
    device: Activities
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
    launch_epoch: Rows
    step_cuts: tuple[Rows, Rows]
    step_epochs: tuple[Rows, Rows]
    horizon_work: Mask
    foreign: Rows
    unexplained: float

    def without_recording(self, scale: float = 1.0) -> Graph:
        """The same with what the profiler takes to record each event, `scale` times the usual, taken off the host."""
        return replace(self, host=replace(self.host, work_ns=_unrecorded(self.profile, self.host, scale)))

    def faster(self, part: float) -> Graph:
        """The same with this part of all host time gone, whatever it is spent on."""
        return replace(self, host=replace(self.host, work_ns=self.host.work_ns * (1 - part)))


def graph_of(profile: Profile) -> Graph | None:
    """The graph of a profile; None where nothing can be replayed, because it has no steps or no time in them."""
    table = profile.table
    has_host = bool((table.is_category((*HOST_TREE, Category.RUNTIME)) & (table.category != Category.MEMORY)).any())
    if not has_host or not profile.steps.median_ns:
        return None
    host = host_lanes(profile)
    device = activities_of(profile, host)
    waits = waits_of(profile, host, device)
    epochs = _Epochs(host, waits)
    begin = _column([wait.begin for wait in waits])
    end = _column([wait.end for wait in waits])
    thread = _column([wait.thread_cut for wait in waits])
    step_cuts = tuple(host.at_or_before(host.main, times) for times in (profile.steps.starts, profile.steps.ends))
    last_ns = profile.steps.items[-1].end_ns
    has_no_steps = profile.steps.basis == "whole_trace"
    return Graph(
        profile=profile,
        host=host,
        device=device,
        waits=tuple(waits),
        wait_for_device=np.array([wait.for_device for wait in waits], np.bool_),
        wait_begin=np.maximum(begin, epochs.previous_end),
        wait_end=end,
        wait_own_ns=np.array([wait.own_ns for wait in waits], np.float64),
        wait_epoch=epochs.previous,
        wait_thread=thread,
        wait_thread_epoch=epochs.at(thread),
        wait_thread_after_ns=np.array([wait.after_thread_ns for wait in waits], np.float64),
        wait_before=np.searchsorted(device.start_ns, host.time_ns[end]),
        launch_epoch=epochs.at(device.launch_cut),
        step_cuts=(step_cuts[0], step_cuts[1]),
        step_epochs=(epochs.at(step_cuts[0]), epochs.at(step_cuts[1])),
        horizon_work=(device.launched_ns < last_ns) | has_no_steps,
        foreign=_foreign(profile),
        unexplained=_unexplained(profile, host, device, waits),
    )


def _column(numbers: Sequence[int]) -> Rows:
    return np.array(numbers, np.int64)


class _Epochs:
    """Which wait each place of a host lane comes after."""

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
        self._by_end = np.argsort(end, kind="stable")  # cuts are numbered lane after lane
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
    tree, thread = profile.tree, profile.table.thread[: profile.tree.size]
    inside = np.flatnonzero(tree.parent != ABSENT)
    foreign: Rows = inside[thread[inside] != thread[tree.parent[inside]]]
    return foreign


def _unexplained(profile: Profile, host: HostLanes, device: Activities, waits: Sequence[Wait]) -> float:
    lost = device.unexplained.minus(profile.device_busy)
    lost = clipped_to_steps(profile, lost.plus(covered(profile.table, unexplained_waits(profile, waits, host))))
    steps = profile.steps
    total_ns = int((steps.ends - steps.starts).sum())
    return min(lost.total_ns / total_ns, 1.0) if total_ns else 0.0


def _unrecorded(profile: Profile, host: HostLanes, scale: float) -> Floats:
    """Half of what an event takes to record comes before its own work, half of it after its end."""
    table, spent_ns = profile.table, np.zeros(len(host.work_ns))
    for category, each_ns in RECORDED_NS.items():
        rows = np.flatnonzero((table.category == category) & (host.start_cut != ABSENT))
        for cuts in (host.start_cut[rows], host.end_cut[rows]):
            spent_ns += np.bincount(cuts, minlength=len(spent_ns)) * (each_ns * scale / 2)
    return np.maximum(host.work_ns - spent_ns, 0.0)
