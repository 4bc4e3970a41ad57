"""Processor time of loaders' workers while the profiler records.

A trace shows that a step waits for workers, but not what they do. Workers that hardly compute wait for a disk or a
network, so more of them help, even more than there are cores.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator, Mapping

from tb_tidy_plugin.capture.settings import kinds_below


class WorkerTimes:
    """Processor time from the first recorded step to the last, of processes that lived all that time; Linux only."""

    def __init__(self) -> None:
        self._began_ns = self._elapsed_ns = 0
        self._before: Mapping[int, int] = {}
        self._spent_ns: Mapping[int, int] = {}
        self._found: Mapping[str, int] | None = None

    def begin(self) -> None:
        """Marks the start of the first recorded step."""
        from multiprocessing import active_children

        children = [child.pid for child in active_children() if child.pid is not None]
        self._before = {process: time_ns for process in children if (time_ns := _processor_ns(process)) is not None}
        self._spent_ns, self._found = {}, None
        self._began_ns = time.perf_counter_ns()

    def end(self) -> None:
        """Marks the end of the last recorded step."""
        self._elapsed_ns = time.perf_counter_ns() - self._began_ns
        after = {process: _processor_ns(process) for process in self._before}
        self._spent_ns = {
            process: time_ns - self._before[process] for process, time_ns in after.items() if time_ns is not None
        }
        self._before = {}

    def found(self) -> Mapping[str, int] | None:
        """Number of workers, their processor time together, and the time that passed.

        None without workers, and if several loaders have some: those of one would idle while the job takes batches from
        another.
        """
        if self._spent_ns:
            loaders = [measured for workers in _workers() if (measured := workers & self._spent_ns.keys())]
            if len(loaders) == 1:
                processor_ns = sum(self._spent_ns[process] for process in loaders[0])
                counted = {"count": len(loaders[0]), "processor_ns": processor_ns, "elapsed_ns": self._elapsed_ns}
                self._found = counted
            self._spent_ns = {}  # later the workers may be gone
        return self._found


def _workers() -> Iterator[set[int]]:
    """Process ids of the workers of each loader that has batches to give, found by one pass over all objects."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    iterators = set(kinds_below(_BaseDataLoaderIter))
    for each in gc.get_objects():
        if type(each) in iterators:
            yield {worker.pid for worker in vars(each).get("_workers", ())}


def _processor_ns(process: int) -> int | None:
    """Processor time of all threads of another process; None if the system does not tell."""
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime_ns(~process << 3 | 2)  # as clock_getcpuclockid(3) has it
    except OSError:
        return None
