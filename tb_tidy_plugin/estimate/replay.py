"""The step computed again with some of its work changed: when each wait and each activity then ends.

Everything begins as early as what it waits for allows, in the recorded order. Without a change that is the recording
itself, to the ns.

The loop over all activities exists twice: in Python, and compiled (`_walk.pyx`) if a compiler was present at
installation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.estimate.graph import Graph
from tb_tidy_plugin.estimate.host import Floats
from tb_tidy_plugin.system.compiled import is_usable
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Rows

IS_COMPILED = is_usable("tb_tidy_plugin.estimate._walk")
if IS_COMPILED:
    from tb_tidy_plugin.estimate._walk import begin

NEVER = -np.inf
NOTHING, NO_PARTS = np.empty(0, np.int64), np.empty(0, np.float64)

_Activities: TypeAlias = tuple[Rows, Rows, Floats, Floats, Rows, Floats, Floats]
"""Stream; epoch of the launch, and time added to it; time after the stream; other activity, time after it; length."""

_Numbers: TypeAlias = Floats | list[float]

_Wait: TypeAlias = tuple[int, int, float, int, float, bool, float]
"""Activities begun before; epoch, and time added to it; the same of another thread; True if it waits for devices; time
passed on its lane.
"""


class Changes(msgspec.Struct, frozen=True):
    """Effect of edits on a graph.

    Attributes:
        cuts, left: cuts of host lanes, ascending, and the remaining part of the time from each to the next of them.
        device: remaining part of each activity's time.
        gone: activities that do not happen, or not in line with the others.
        unblocked: waits that do not happen.
        beside_ns: work that runs beside the rest, which then takes at least that long.
    """

    cuts: Rows
    left: Floats
    device: Floats
    gone: Mask
    unblocked: Mask
    beside_ns: float = 0.0


class Schedule(msgspec.Struct, frozen=True):
    """Times of everything in a replay.

    Attributes:
        graph: the replayed graph.
        passed_ns: time that its thread spends up to each place, without waits; only differences on one lane count.
        offset_ns: for each epoch, the difference between the time and `passed_ns`.
        device_end_ns: end of each activity.
        beside_ns: as in `Changes`.
    """

    graph: Graph
    passed_ns: Floats
    offset_ns: Floats
    device_end_ns: Floats
    beside_ns: float

    def host_ns(self, places: Rows, epochs: Rows) -> Floats:
        """Times at which the host reaches these places."""
        times: Floats = self.offset_ns[epochs] + self.passed_ns[places]
        return times

    @property
    def steps_ns(self) -> Floats:
        """Host time of each step; if the whole trace is the step, the time until everything is done."""
        if self.graph.profile.steps.basis == "whole_trace":
            return np.array([self.horizon_ns - self.graph.profile.steps.items[0].start_ns])
        (starts, ends), (start_epochs, end_epochs) = self.graph.step_places, self.graph.step_epochs
        return self.host_ns(ends, end_epochs) - self.host_ns(starts, start_epochs)

    @property
    def horizon_ns(self) -> float:
        """End of the steps and of all that they launched; a host that only runs ahead does not bring it forward."""
        graph = self.graph
        host_ns = float(self.host_ns(graph.step_places[1][-1:], graph.step_epochs[1][-1:])[0])
        done_ns = max(host_ns, float(self.device_end_ns[graph.horizon_work].max(initial=host_ns)))
        start_ns = float(graph.place_ns[graph.step_places[0][0]])
        return max(done_ns, start_ns + self.beside_ns)


def replay(graph: Graph, changes: Changes | None = None) -> Schedule:
    """The schedule of `graph` under `changes`."""
    changed = (NOTHING, NO_PARTS) if changes is None else (changes.cuts, changes.left)
    passed_ns = graph.host.passed_ns(graph.places, *changed)
    offsets, ends = _walk(graph, _waits(graph, passed_ns, changes), _activities(graph, passed_ns, changes), passed_ns)
    return Schedule(
        graph=graph,
        passed_ns=passed_ns,
        offset_ns=np.array(offsets),
        device_end_ns=np.array(ends),
        beside_ns=0.0 if changes is None else changes.beside_ns,
    )


def _activities(graph: Graph, passed_ns: Floats, changes: Changes | None) -> _Activities:
    """Data of each activity for the walk."""
    device = graph.device
    has_launch = graph.launch != ABSENT
    launched_ns = np.where(has_launch, passed_ns[graph.launch], 0.0) + device.after_launch_ns
    launched_ns[~device.has_launch_bound] = NEVER
    # An activity without a launch but with a bound keeps its recorded time: the last epoch is the recording's own.
    epochs = np.where(has_launch, graph.launch_epoch, len(graph.host.first) - 1 + len(graph.waits))
    duration_ns, after_stream_ns = (device.end_ns - device.start_ns).astype(np.float64), device.after_stream_ns
    if changes is not None:
        duration_ns = np.where(changes.gone, 0.0, duration_ns * changes.device)
        launched_ns[changes.gone] = NEVER
        # Idle time between activities goes with them; what ran beside others still does.
        shorter_ns = np.where(after_stream_ns > 0, after_stream_ns * changes.device, after_stream_ns)
        after_stream_ns = np.where(changes.gone, 0.0, shorter_ns)
    other = np.where(device.other == ABSENT, len(device), device.other)  # after the last one, which never ends
    return device.stream, epochs, launched_ns, after_stream_ns, other, device.after_other_ns, duration_ns


def _waits(graph: Graph, passed_ns: Floats, changes: Changes | None) -> list[_Wait]:
    """Data of each wait for the walk; a wait's own time changes with the time of its events."""
    recorded_ns, begin, end = graph.place_ns, graph.wait_begin, graph.wait_end
    length_ns = recorded_ns[end] - recorded_ns[begin]
    pace = np.where(length_ns > 0, (passed_ns[end] - passed_ns[begin]) / np.maximum(length_ns, 1), 1.0)
    own_ns = passed_ns[begin] + np.minimum(graph.wait_own_ns, length_ns) * pace
    there = np.minimum(graph.wait_thread, len(passed_ns) - 2)
    there_ns = recorded_ns[there + 1] - recorded_ns[there]
    there_pace = np.where(there_ns > 0, (passed_ns[there + 1] - passed_ns[there]) / np.maximum(there_ns, 1), 1.0)
    thread_ns = passed_ns[graph.wait_thread] + graph.wait_thread_after_ns * there_pace
    thread_ns[graph.wait_thread == ABSENT] = NEVER
    blocked = np.ones(len(graph.waits), np.bool_) if changes is None else ~changes.unblocked
    columns = (graph.wait_before, graph.wait_epoch, own_ns, graph.wait_thread_epoch, thread_ns, blocked, passed_ns[end])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _walk(graph: Graph, waits: list[_Wait], activities: _Activities, passed_ns: Floats) -> tuple[_Numbers, _Numbers]:
    """The offset of each epoch, and the end of each activity, in recorded order."""
    known = graph.place_ns[graph.lane_place] - passed_ns[graph.lane_place]
    streams, count = int(graph.device.stream.max(initial=0)) + 1, len(graph.device)
    empty = (np.concatenate([known, np.zeros(len(waits) + 1)]), np.full(streams, NEVER), np.full(count + 1, NEVER))
    state: list[_Numbers] = [*empty] if IS_COMPILED else [column.tolist() for column in empty]
    columns = activities if IS_COMPILED else [column.tolist() for column in activities]
    run: Callable[..., None] = begin if IS_COMPILED else _begin
    offsets, _, ends = state
    begun = 0
    for number, (before, epoch, own, thread_epoch, thread, blocked, passed) in enumerate(waits):
        run(*columns, begun, before, *state)
        begun = before
        end = max(offsets[epoch] + own, offsets[thread_epoch] + thread)
        if blocked:
            for activity, after in graph.waits[number].activities:
                end = max(end, ends[activity] + after)
        offsets[len(known) + number] = end - passed
    run(*columns, begun, count, *state)
    return offsets[:-1], ends[:-1]


def _begin(  # noqa: PLR0913, PLR0917 - as the compiled one
    stream: list[int],
    epoch: list[int],
    launched: list[float],
    after_stream: list[float],
    other: list[int],
    after_other: list[float],
    duration: list[float],
    first: int,
    last: int,
    offsets: list[float],
    free: list[float],
    ends: list[float],
) -> None:
    """Fills in the ends of the activities from `first` to `last`, and the end of all work of each stream.

    Uses comparisons where `max` would read better: this loop is nearly all of a replay, and they halve its time.
    """
    columns = (stream, epoch, launched, after_stream, other, after_other, duration)
    rows = zip(*(column[first:last] for column in columns), strict=True)
    for at, (line, place, launch, rest, another, behind, length) in enumerate(rows, first):
        start = offsets[place] + launch
        if (free_at := free[line] + rest) > start:
            start = free_at
        if (other_at := ends[another] + behind) > start:
            start = other_at
        ends[at] = end = start + length
        if end > free[line]:  # noqa: PLR1730 - as above
            free[line] = end
