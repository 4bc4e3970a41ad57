"""Page faults of steps: number of times that new memory was mapped in recorded steps, and in others.

While the profiler records, it takes memory that a CPU job's tensors would reuse, so that more of their memory must be
newly mapped. No event shows that time; the system counts the faults of each process.
"""

from __future__ import annotations

import mmap
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from statistics import median

with suppress(ImportError):  # Windows has none
    import resource

MOST_STEPS = 10_000
SAMPLE_BYTES, SAMPLES = 1 << 20, 5


class StepFaults:
    """The faults of the most recent steps; empty if the system counts none."""

    def __init__(self) -> None:
        self._before: int | None = None
        self._recorded: deque[int] = deque(maxlen=MOST_STEPS)
        self._others: deque[int] = deque(maxlen=MOST_STEPS)

    def begin(self) -> None:
        """Marks the start of a step."""
        self._before = _faults()

    def end(self, *, is_recorded: bool | None) -> None:
        """Marks the end of a step; it does not count if `is_recorded` is None."""
        now = _faults()
        if now is not None and self._before is not None and is_recorded is not None:
            (self._recorded if is_recorded else self._others).append(now - self._before)

    def found(self, steps: int) -> Mapping[str, int | list[int]] | None:
        """Faults of the last `steps` recorded steps, of the median other step, and ns of one fault; None if unknown."""
        if not self._recorded or not self._others:
            return None
        recorded = list(self._recorded)[-steps:]
        return {"recorded": recorded, "usual": round(median(self._others)), "each_ns": round(fault_ns())}


def _faults() -> int | None:
    """Number of times that this process had to wait for memory to be mapped."""
    try:
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    except NameError:
        return None


def fault_ns() -> float:
    """Extra time of writing to a page for the first time, in ns on this machine: the median of some samples."""
    return median(_fault_sample_ns() for _ in range(SAMPLES))


def _fault_sample_ns() -> float:
    pages = range(0, SAMPLE_BYTES, mmap.PAGESIZE)
    with mmap.mmap(-1, SAMPLE_BYTES) as memory:
        first_ns = _writing_ns(memory, pages)
        return max(first_ns - _writing_ns(memory, pages), 0) / len(pages)


def _writing_ns(memory: mmap.mmap, places: Iterable[int]) -> int:
    start_ns = time.perf_counter_ns()
    for place in places:
        memory[place] = 1
    return time.perf_counter_ns() - start_ns
