"""Steps of a test: some to warm up, some recorded, some timed without the profiler."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tb_tidy_plugin.capture.profiling import Cycle, Output, TidyProfile, wait_for_device
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX

_Item = TypeVar("_Item")

PROFILER_WARMUP = 1


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Numbers of steps, in this order: not recorded, one to start the profiler, recorded, timed."""

    warmup: int = 3
    recorded: int = 3
    timed: int = 10

    @property
    def until_timed(self) -> int:
        """Steps until the recording is complete."""
        return self.warmup + PROFILER_WARMUP + self.recorded

    @property
    def steps(self) -> int:
        return self.until_timed + self.timed


class BudgetedProfile(TidyProfile):
    """Records the steps of a test with shapes, stacks and allocations, and times the following ones.

    Attributes:
        plan: number of steps in each part. times_ns: time of each timed step, until the device has done its work.
    """

    def __init__(self, folder: Path, plan: StepPlan) -> None:
        cycle = Cycle(wait=plan.warmup, warmup=PROFILER_WARMUP, active=plan.recorded)
        super().__init__(str(folder), cycle, Output(), {"profile_memory": True})
        self.plan = plan
        self.times_ns: list[int] = []

    def step(self) -> None:
        if self._steps >= self.plan.until_timed and self._since_ns is not None:
            wait_for_device()
            self.times_ns.append(time.perf_counter_ns() - self._since_ns)
        super().step()

    def steps(self, items: Iterable[_Item]) -> Iterator[_Item]:
        """Yields as many of `items` as the plan has steps, repeating them if they end, and marks the steps.

        Raises:
            ValueError: `items` is empty, or can be iterated only once.
        """
        left = self.plan.steps
        while left:
            before = left
            for item in items:
                yield item
                self.step()
                left -= 1
                if not left:
                    return
            if left == before:
                raise ValueError(f"{left} more steps are needed, but there are no more items; give a list or a loader")

    @property
    def marked(self) -> int:
        return self._steps

    @property
    def trace(self) -> Path | None:
        """The recording, None if nothing was recorded."""
        return None if self._side_file is None else Path(str(self._side_file).removesuffix(CAPTURE_SUFFIX))
