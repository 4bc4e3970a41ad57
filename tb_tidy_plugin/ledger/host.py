"""Activity of each host thread at each instant: its innermost event, and the functions and operators around it.

Annotations are not part of the nesting, because with stacks they begin inside the function that opens them and outlive
it; they are looked up by time instead. Nothing here recurses, and the number of threads examined is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

import numpy as np

from tb_tidy_plugin.profile.compiled.compilations import BUILDS
from tb_tidy_plugin.profile.events.intervals import Intervals, covered
from tb_tidy_plugin.profile.events.nesting import contained, fitted, nearest, outer_first, unfolded
from tb_tidy_plugin.profile.host.critical import LOADING, PROFILER_OVERHEADS
from tb_tidy_plugin.profile.host.waiting import WAITING, busiest_in_python
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import LOADER_NEXT
from tb_tidy_plugin.profile.work.cpu_work import recorder_frames
from tb_tidy_plugin.torchfacts.event_names import (
    BEGIN_CAPTURE,
    COMPILATION,
    END_CAPTURE,
    GARBAGE_COLLECTION,
    GRAPH_INSTANTIATE,
    SYNCHRONISATION,
)
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, EventTable, Ids, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.causes import Cause

CALLS = (Category.OPERATOR, Category.PYTHON, Category.RUNTIME)

LOADER_FRAME = re.compile(r"(?:^|/)torch(?:data)?/.*(?:dataloader|stateful_dataloader)\.py\(\d+\): __next__$")
HOST_COLLECTIVE = re.compile(r"^(?:gloo|hccl|mpi|ucc):|distributed_c10d\.py\(\d+\): (?:monitored_)?barrier$")
COMPILE_FRAME = re.compile(
    rf"{COMPILATION.pattern}|CUDAGraphNode\.record|torch/_inductor/codecache\.py|{BUILDS.pattern}"
)
CAPTURE = re.compile(f"{BEGIN_CAPTURE}|{END_CAPTURE}|{GRAPH_INSTANTIATE}")

MOST_THREADS = 6
"""Most threads examined beside the main one: those that launch, or work, most."""


class Nest:
    """Events of host threads, nested by time, thread by thread.

    Attributes:
        rows: events with a duration, by thread, start and descending end.
        parent: position of the innermost event around each one, `ABSENT` for none.
    """

    def __init__(self, table: EventTable, wanted: Mask) -> None:
        self.table = table
        rows = np.flatnonzero(wanted & (table.end_ns > table.start_ns))
        is_runtime = table.category[rows] == Category.RUNTIME
        tie = np.where(is_runtime, np.iinfo(np.int64).max, table.event_index[rows].astype(np.int64))
        rows = outer_first(table, rows, tie)
        self.parent = contained(table, rows, table.end_ns[rows])[0] if len(rows) else np.empty(0, np.int32)
        self._fitted = fitted(table, rows, self.parent)
        if self._fitted is not None:
            self.parent = contained(table, rows, self._fitted)[0]
        self.rows: Numbers = rows.astype(np.int32)
        self.first = np.searchsorted(table.thread[self.rows], np.arange(len(table.threads) + 1))
        self._lanes: dict[int, tuple[Times, Numbers]] = {}

    def lane(self, thread: int) -> tuple[Times, Numbers]:
        """Ascending times at which the thread's innermost event changes, and its position from then on or `ABSENT`."""
        if thread not in self._lanes:
            self._lanes[thread] = self._unfolded(thread)
        return self._lanes[thread]

    def forget_lanes(self) -> None:
        """Lets go of what `lane` keeps, which is as large as a recording's times; to be called when it is done with."""
        self._lanes.clear()

    def _unfolded(self, thread: int) -> tuple[Times, Numbers]:
        low, high = (0, 0) if thread == ABSENT else self.first[thread : thread + 2].tolist()
        rows = self.rows[low:high]
        end_ns = self.table.end_ns[rows] if self._fitted is None else self._fitted[low:high]
        times, label = unfolded(self.table.start_ns[rows], end_ns, self.parent[low:high], low)
        return times, label.astype(np.int32)

    def innermost(self, thread: int, times: Times) -> Numbers:
        """Position of the thread's innermost event at each of `times`, `ABSENT` for none."""
        changes, label = self.lane(thread)
        return np.append(label, np.int32(ABSENT))[np.searchsorted(changes, times, side="right") - 1]

    def nearest(self, wanted: Mask) -> Numbers:
        """The innermost event for which `wanted` holds, among each event and those around it; `ABSENT` for none.

        Has one entry more than there are events, for `ABSENT`.
        """
        found = np.full(len(self.rows) + 1, ABSENT, np.int32)
        found[:-1] = nearest(self.parent, wanted)
        return found

    def names(self, positions: Ids) -> Numbers:
        """Number of the name at each of `positions`, `ABSENT` for `ABSENT`."""
        return np.append(self.table.name[self.rows], np.int32(ABSENT))[positions]


class Host(Nest):
    """Operators, Python frames and runtime calls of a profile; `marks` are its annotations."""

    def __init__(self, profile: Profile, marks_thread: int) -> None:
        table = profile.table
        super().__init__(table, table.is_category(CALLS))
        self.profile = profile
        self.marks = Nest(table, table.category == Category.ANNOTATION)
        self._layers: dict[int, list[tuple[Cause, Intervals]]] = {}
        self.main = marks_thread if marks_thread != ABSENT else self._busiest()

    def _busiest(self) -> int:
        """The thread with most Python frames that work, else most operators, else most events."""
        if (thread := busiest_in_python(self.profile)) != ABSENT:
            return thread
        category = self.table.category[self.rows]
        for wanted in (category == Category.OPERATOR, np.ones(len(category), np.bool_)):
            if wanted.any():
                return int(np.argmax(np.bincount(self.table.thread[self.rows[wanted]])))
        return ABSENT

    @cached_property
    def at(self) -> Numbers:
        """Position in `rows` of each row of the table, `ABSENT` for rows that are not in it."""
        at = np.full(len(self.table) + 1, ABSENT, np.int32)
        at[self.rows] = np.arange(len(self.rows))
        return at

    @cached_property
    def others(self) -> list[int]:
        """Threads that launch device work or run operators, busiest first, without the main one."""
        table = self.table
        launch = self.profile.launch
        calls = distinct(launch[launch != ABSENT])
        if not len(calls):
            calls = self.rows[table.category[self.rows] == Category.OPERATOR]
        counts = np.bincount(table.thread[calls], minlength=1)
        order = np.argsort(-counts, kind="stable")[: MOST_THREADS + 1].tolist()
        return [thread for thread in order if counts[thread] and thread != self.main][:MOST_THREADS]

    # Activity of a thread

    def layers(self, thread: int) -> list[tuple[Cause, Intervals]]:
        """Spans of the thread's events that have a cause of their own, the most specific cause first."""
        if thread not in self._layers:
            here = self.table.thread == thread
            self._layers[thread] = [
                (cause, covered(self.table, rows[here[rows]])) for cause, rows in self._caused.items()
            ]
            captures = self._captures(thread)
            self._layers[thread][1] = (Cause.GRAPH_CAPTURE, self._layers[thread][1][1].plus(captures))
        return self._layers[thread]

    @cached_property
    def _caused(self) -> dict[Cause, Rows]:
        table = self.table
        host = table.is_category(HOST_TREE)
        return {
            Cause.COMPILATION: np.flatnonzero(host & self._named(COMPILE_FRAME.search)),
            Cause.GRAPH_CAPTURE: np.flatnonzero((table.category == Category.RUNTIME) & self._named(CAPTURE.match)),
            Cause.DATA_LOADING: np.flatnonzero(
                host & (self._named(LOADER_NEXT.fullmatch) | self._named(LOADER_FRAME.search))
            ),
            Cause.HOST_COMMUNICATION: np.flatnonzero(host & self._named(HOST_COLLECTIVE.search)),
            Cause.PROFILER: recorder_frames(self.table),
        }

    def _captures(self, thread: int) -> Intervals:
        """Spans of the thread's graph captures, from beginning to end."""
        table = self.table
        calls = self._caused[Cause.GRAPH_CAPTURE]
        calls = calls[table.thread[calls] == thread]
        calls = calls[np.argsort(table.start_ns[calls], kind="stable")]
        begins = calls[among(table.name[calls], numbers_where(table.names, re.compile(BEGIN_CAPTURE).match))]
        ends = calls[among(table.name[calls], numbers_where(table.names, re.compile(END_CAPTURE).match))]
        at = np.searchsorted(table.start_ns[ends], table.start_ns[begins])
        paired = at < len(ends)
        return Intervals.union(table.start_ns[begins[paired]], table.end_ns[ends[at[paired]]])

    @cached_property
    def everywhere(self) -> list[tuple[Cause, Intervals]]:
        """Spans that affect all threads: the profiler's own work, garbage collection, loading of kernels."""
        table = self.table
        overhead = table.category == Category.OVERHEAD
        collecting = (table.category != Category.DEVICE_ANNOTATION) & self._named(GARBAGE_COLLECTION.search)
        return [
            (Cause.PROFILER, covered(table, overhead & self._named(PROFILER_OVERHEADS.search))),
            (Cause.GARBAGE_COLLECTION, covered(table, collecting)),
            (Cause.FIRST_LAUNCH, covered(table, overhead & self._named(LOADING.search))),
        ]

    @cached_property
    def communicating(self) -> Intervals:
        """Spans in which any thread communicates by the host."""
        return covered(self.table, self._caused[Cause.HOST_COMMUNICATION])

    # Properties of calls, by position

    def _named(self, test: Callable[[str], object]) -> Mask:
        return self.table.is_named(test)

    def _call_named(self, test: Callable[[str], object]) -> Mask:
        return among(self.table.name[self.rows], numbers_where(self.table.names, test))

    @cached_property
    def waits(self) -> Mask:
        """Mask of calls that only wait for another thread; one entry more than there are calls, for `ABSENT`."""
        return np.append(self._call_named(WAITING.search), True)

    @cached_property
    def synchronises(self) -> Mask:
        """Mask of calls that return only when the device has caught up; one entry more, for `ABSENT`."""
        is_runtime = self.table.category[self.rows] == Category.RUNTIME
        found = self._call_named(SYNCHRONISATION.search) & is_runtime
        found[self.at[self.blocking_copies]] = True
        return np.append(found, False)

    @cached_property
    def blocking_copies(self) -> Rows:
        """Calls that copy between a device and pageable memory; CUDA waits in them."""
        table = self.table
        copies = np.flatnonzero((table.category == Category.COPY) & self._named(lambda name: "Pageable" in name))
        calls = self.profile.launch[copies] if len(copies) else copies
        calls = calls[calls != ABSENT]
        found: Rows = calls[self.at[calls] != ABSENT]
        return found

    @cached_property
    def is_runtime(self) -> Mask:
        """Mask of runtime calls; one entry more, for `ABSENT`."""
        return np.append(self.table.category[self.rows] == Category.RUNTIME, False)

    @cached_property
    def is_operator(self) -> Mask:
        """Mask of operators; without the entry for `ABSENT`."""
        found: Mask = self.table.category[self.rows] == Category.OPERATOR
        return found
