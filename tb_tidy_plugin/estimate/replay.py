"""The step computed again with some of its work changed: when each wait and each activity then ends.

Everything begins as early as what it waits for allows, in the recorded order. Without a change that is the recording
itself, to the ns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from tb_tidy_plugin.estimate.graph import Graph
from tb_tidy_plugin.estimate.host import Floats
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Rows

NEVER = -np.inf


@dataclass(frozen=True, slots=True)
class Changes:
    """What edits do to a graph.

    Attributes:
        host: for each cut which part of the time up to the next one remains.
        device: for each activity which part of its time remains.
        gone: activities that do not happen, or not in line with the others.
        unblocked: waits that do not happen.
        beside_ns: how much work runs beside the rest, which then takes at least that long.
    """

    host: Floats
    device: Floats
    gone: Mask
    unblocked: Mask
    beside_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """When everything happens.

    Attributes:
        graph: what was replayed.
        passed_ns: time that its thread spends up to each cut, waits left out; only differences on one lane count.
        offset_ns: of each epoch what is added to `passed_ns` to tell the time.
        device_end_ns: end of each activity.
        beside_ns: as in `Changes`.
    """

    graph: Graph
    passed_ns: Floats
    offset_ns: Floats
    device_end_ns: Floats
    beside_ns: float

    def host_ns(self, cuts: Rows, epochs: Rows) -> Floats:
        """When the host comes to these places."""
        times: Floats = self.offset_ns[epochs] + self.passed_ns[cuts]
        return times

    @property
    def steps_ns(self) -> Floats:
        """How long the host takes for each step; all until everything is done where the whole trace is the step."""
        if self.graph.profile.steps.basis == "whole_trace":
            return np.array([self.horizon_ns - self.graph.profile.steps.items[0].start_ns])
        (starts, ends), (start_epochs, end_epochs) = self.graph.step_cuts, self.graph.step_epochs
        return self.host_ns(ends, end_epochs) - self.host_ns(starts, start_epochs)

    @property
    def horizon_ns(self) -> float:
        """When the steps and all that they launched are done; a host that only runs ahead does not bring it forward."""
        graph = self.graph
        host_ns = float(self.host_ns(graph.step_cuts[1][-1:], graph.step_epochs[1][-1:])[0])
        done_ns = max(host_ns, float(self.device_end_ns[graph.horizon_work].max(initial=host_ns)))
        start_ns = float(graph.host.time_ns[graph.step_cuts[0][0]])
        return max(done_ns, start_ns + self.beside_ns)


def replay(graph: Graph, changes: Changes | None = None) -> Schedule:
    """The schedule of `graph` under `changes`."""
    host, device = graph.host, graph.device
    work_ns = host.work_ns if changes is None else host.work_ns * changes.host
    passed_ns = np.concatenate([[0.0], np.cumsum(work_ns[:-1])]) if len(work_ns) else work_ns
    lanes = len(host.first) - 1
    offsets = [*(host.time_ns[host.first[:-1]] - passed_ns[host.first[:-1]]).tolist(), *[0.0] * (len(graph.waits) + 1)]
    launched_ns = np.where(device.launch_cut == ABSENT, 0.0, passed_ns[device.launch_cut]) + device.after_launch_ns
    launched_ns[~device.has_launch_bound] = NEVER
    duration_ns = (device.end_ns - device.start_ns).astype(np.float64)
    after_stream_ns = device.after_stream_ns
    if changes is not None:
        duration_ns = np.where(changes.gone, 0.0, duration_ns * changes.device)
        launched_ns[changes.gone] = NEVER
        after_stream_ns = np.where(after_stream_ns > 0, after_stream_ns * changes.device, after_stream_ns)
        after_stream_ns[changes.gone] = 0.0
    absolute = len(offsets) - 1  # the epoch of what has no launch: its time is that of the recording
    epochs = np.where(device.launch_cut == ABSENT, absolute, graph.launch_epoch)
    ends = _Pass(graph, offsets, passed_ns, changes).run(
        device.stream.tolist(), epochs.tolist(), launched_ns.tolist(), after_stream_ns.tolist(),
        device.other.tolist(), device.after_other_ns.tolist(), duration_ns.tolist(),
    )  # fmt: skip
    beside_ns = 0.0 if changes is None else changes.beside_ns
    return Schedule(graph, passed_ns, np.array(offsets[: lanes + len(graph.waits)]), np.array(ends), beside_ns)


_Activity: TypeAlias = tuple[int, int, float, float, int, float, float]
"""Stream, epoch and distance of the launch, distance from the stream, the other activity and distance, duration."""


class _Pass:
    """One walk over waits and activities in recorded order."""

    def __init__(self, graph: Graph, offsets: list[float], passed_ns: Floats, changes: Changes | None) -> None:
        self._graph = graph
        self._offsets = offsets
        self._passed = passed_ns
        work, time = graph.host.work_ns, graph.host.time_ns
        length = time[graph.wait_end] - time[graph.wait_begin]
        # A wait's own time changes as the time of its events does.
        pace = np.where(length > 0, (passed_ns[graph.wait_end] - passed_ns[graph.wait_begin]) / np.maximum(length, 1), 1.0)
        self._own = passed_ns[graph.wait_begin] + np.minimum(graph.wait_own_ns, length) * pace
        has_thread = graph.wait_thread != ABSENT
        there = np.where(has_thread, graph.wait_thread, 0)
        slope = np.where(work[there] > 0, np.append(np.diff(passed_ns), 0.0)[there] / np.maximum(work[there], 1.0), 1.0)
        self._thread = np.where(has_thread, passed_ns[there] + graph.wait_thread_after_ns * slope, NEVER)
        self._unblocked = changes.unblocked if changes is not None else np.zeros(len(graph.waits), np.bool_)

    def run(
        self, streams: list[int], epochs: list[int], launched: list[float], after_stream: list[float],
        others: list[int], after_other: list[float], durations: list[float],
    ) -> list[float]:  # fmt: skip
        """The end of each activity; the offset of each epoch is filled in on the way."""
        offsets, first_wait = self._offsets, len(self._graph.host.first) - 1
        free = [NEVER] * (max(streams, default=0) + 1)
        ends = [NEVER] * (len(streams) + 1)  # the last one is what `ABSENT` points at
        activities = enumerate(
            zip(streams, epochs, launched, after_stream, others, after_other, durations, strict=True)
        )
        columns = (
            self._graph.wait_before, self._own, self._graph.wait_epoch, self._thread, self._graph.wait_thread_epoch,
            self._passed[self._graph.wait_end], self._unblocked,
        )  # fmt: skip
        done = 0
        rows = zip(*(column.tolist() for column in columns), self._graph.waits, strict=True)
        for number, (before, own, epoch, thread, thread_epoch, passed, unblocked, wait) in enumerate(rows):
            if done < before:
                _begin(activities, before - done, offsets, free, ends)
                done = before
            end = max(offsets[epoch] + own, offsets[thread_epoch] + thread)
            if not unblocked:
                for activity, after in wait.activities:
                    end = max(end, ends[activity] + after)
            offsets[first_wait + number] = end - passed
        _begin(activities, len(streams) - done, offsets, free, ends)
        return ends[:-1]


def _begin(
    activities: Iterator[tuple[int, _Activity]], count: int, offsets: list[float], free: list[float], ends: list[float]
) -> None:
    """The next `count` activities, whose launches are known; `free` tells when all work of a stream is done."""
    for at, (stream, epoch, launched, after_stream, other, after_other, duration) in islice(activities, count):
        start = offsets[epoch] + launched
        begun = free[stream] + after_stream
        if begun > start:
            start = begun
        begun = ends[other] + after_other
        if begun > start:
            start = begun
        ends[at] = end = start + duration
        if end > free[stream]:
            free[stream] = end
