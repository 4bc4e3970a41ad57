"""Steps on the device's clock: a host that runs ahead of its device marks steps that take less time than they do."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tb_tidy_plugin.capture.guarded import unless_it_fails

if TYPE_CHECKING:
    import torch

LEAST_TIMED = 3
"""Steps from which a median is taken."""

MOST_TIMED = 100
"""Steps timed before the recording, and as many after it: each takes two events and some microseconds."""

_LOST = "steps are timed by the host"


class DeviceClock:
    """Times steps by events of CUDA or ROCm on the current stream; no step waits for them.

    Nothing is done while the job uses no GPU, or captures a graph. Steps before the recording and after it count apart:
    the first ones of a job are still warming up, and launches are slower once the profiler has run, so the true step is
    the shorter median.
    """

    def __init__(self) -> None:
        self._begun: torch.cuda.Event | None = None
        self._before: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._after: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._is_after = False

    def begin(self) -> None:
        """Marks the begin of a step; once enough are timed, nothing is done."""
        if len(self._steps) < MOST_TIMED:
            self._begun = unless_it_fails("the device's clock", _event, _LOST)

    def end(self, *, is_recorded: bool | None) -> None:
        """Marks its end; `is_recorded` is None while the profiler warms up."""
        begun, self._begun = self._begun, None
        if is_recorded is not False:
            self._is_after = True
        elif begun is not None:
            ended = unless_it_fails("the device's clock", _event, _LOST)
            if ended is not None:
                self._steps.append((begun, ended))

    @property
    def _steps(self) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
        return self._after if self._is_after else self._before

    def wait(self) -> None:
        """Returns when the device has done all steps that are timed."""
        for steps in (self._before, self._after):
            if steps:
                steps[-1][1].synchronize()

    def found_ns(self) -> tuple[int, int] | None:
        """Number of the steps that the median is of, and that median in ns; None if too few were timed."""
        found = ([_time_ns(*step) for step in steps if _is_over(step[1])] for steps in (self._before, self._after))
        medians = [(median(times), len(times)) for times in found if len(times) >= LEAST_TIMED]
        if not medians:
            return None
        step_ns, count = min(medians)
        return count, round(step_ns)


def _is_over(event: torch.cuda.Event) -> bool:
    return bool(event.query())  # type: ignore[no-untyped-call]


def _time_ns(begun: torch.cuda.Event, ended: torch.cuda.Event) -> float:
    return 1e6 * float(begun.elapsed_time(ended))


def _event() -> torch.cuda.Event | None:
    import torch

    if not (torch.cuda.is_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return None
    if torch.cuda.is_current_stream_capturing():
        return None
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event
