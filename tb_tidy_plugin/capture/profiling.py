"""Recording of some steps of a job, with the time of the others, since recording slows a step down."""

from __future__ import annotations

import gzip
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tb_tidy_plugin.capture.device_clock import DeviceClock
from tb_tidy_plugin.capture.faults import StepFaults
from tb_tidy_plugin.capture.guarded import log_harmless, logged_once, reason_of, unless_it_fails
from tb_tidy_plugin.capture.handler import CaptureOptions, capturing, write_document
from tb_tidy_plugin.capture.machine_speed import machine_speed
from tb_tidy_plugin.capture.workers import WorkerTimes
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX

if TYPE_CHECKING:
    import torch

NOTHING_RECORDED = "so nothing is recorded"
_OVER = "so the recording ends here"
_UNMARKED = "so the recording lacks a step"
_WORKERS = "the time of loaders' workers"

MOST_TIMES = 10_000  # step times kept: enough for a median, in little memory


@dataclass(frozen=True, slots=True)
class Cycle:
    """Numbers of steps that are timed, that start the profiler, and that are recorded; and repetitions of all that."""

    wait: int = 5
    warmup: int = 2
    active: int = 5
    repeat: int = 1

    @property
    def needed(self) -> int:
        """Steps until the first recording is complete."""
        return self.wait + self.warmup + self.active

    def within(self, steps: int) -> Cycle:
        """The cycle for a job of few steps: `wait` is shortened first, at least one step is recorded."""
        warmup = min(self.warmup, max(steps - 1, 0))
        active = max(min(self.active, steps - warmup), 1)
        return Cycle(max(min(self.wait, steps - warmup - active), 0), warmup, active, self.repeat)


@dataclass(frozen=True, slots=True)
class Output:
    """Names and contents of the files to write."""

    worker_name: str | None = None
    use_gzip: bool = True
    wanted: CaptureOptions = field(default_factory=CaptureOptions)


class TidyProfile:
    """Records some steps of a job and times those around them; created by `tidy_profile`.

    It sets the marks of the recorded steps itself, as torch's profiler would, so that its own work lies between them.

    If the profiler itself fails (another one is running, a warning is an error), the job goes on without it. It is then
    not even stopped: stopping a profiler that does not run ends the process. Nor is one whose step was interrupted.
    """

    def __init__(self, dir_name: str, cycle: Cycle, output: Output, arguments: Mapping[str, Any]) -> None:
        import torch

        export = torch.profiler.tensorboard_trace_handler(dir_name, output.worker_name, output.use_gzip)
        self._handle = capturing(export, output.wanted, self._around, self._keep_side_file)
        self._cycle = cycle
        self._side_file: Path | None = None
        self._times_ns: list[int] = []
        self._device = DeviceClock()
        self._faults = StepFaults()
        self._workers = WorkerTimes()
        self._machine: Mapping[str, object] | None = None
        self._is_measured = False
        self._since_ns: int | None = None
        self._steps = 0
        self._is_on = False
        self.profiler = torch.profiler.profile(
            schedule=torch.profiler.schedule(**asdict(cycle)),
            on_trace_ready=self._save,
            **{"record_shapes": True, "with_stack": True, **arguments},  # torch checks them
        )
        self.profiler.record_steps = False  # see above
        self._mark: torch.profiler.record_function | None = None

    def start(self) -> None:
        """Starts with the first step."""
        self._is_on = unless_it_fails("the job", lambda: _done(self.profiler.__enter__), NOTHING_RECORDED) is not None
        self._look_at_workers("NONE")
        self._begin_on_device()
        self._begin_mark()

    def step(self) -> None:
        """Marks the end of a step of the job."""
        now_ns = time.perf_counter_ns()
        self.end_mark()
        action = self.profiler.current_action.name
        is_recorded = None if action == "WARMUP" else action != "NONE"
        self._device.end(is_recorded=is_recorded)
        self._faults.end(is_recorded=is_recorded)
        if action == "RECORD_AND_SAVE":
            unless_it_fails(_WORKERS, self._workers.end)
        is_timed = self._since_ns is not None and len(self._times_ns) < MOST_TIMES
        if is_timed and action == "NONE":
            self._times_ns.append(now_ns - (self._since_ns or 0))
        self._steps += 1
        if self._is_on:
            self._is_on = False  # for good, if the job is interrupted meanwhile: see above
            self._is_on = unless_it_fails("a step", lambda: _done(self.profiler.step), _OVER) is not None
            self._look_at_workers(action)
        self._faults.begin()
        self._begin_on_device()
        self._since_ns = time.perf_counter_ns()  # the profiler's own work between two steps does not count
        self._begin_mark()

    def _begin_mark(self) -> None:
        """Begins the mark of a step that is recorded; others need none."""
        if not self._is_on or not self.profiler.current_action.name.startswith("RECORD"):
            return
        try:
            import torch

            mark = torch.profiler.record_function(f"ProfilerStep#{self.profiler.step_num}")
            mark.__enter__()  # type: ignore[no-untyped-call]
            self._mark = mark
        except Exception as error:  # noqa: BLE001 - as in `unless_it_fails`, whose frames would be in the step
            logged_once("the mark of a step", _UNMARKED, reason_of(error))

    def end_mark(self) -> None:
        """Ends the mark of the step, before `step` does; what follows is not part of the step."""
        mark, self._mark = self._mark, None
        if mark is not None:
            try:
                mark.__exit__(None, None, None)
            except Exception as error:  # noqa: BLE001 - see above
                logged_once("the end of a step", _UNMARKED, reason_of(error))

    def _begin_on_device(self) -> None:
        """Times the step that begins on the device, too, if it is not recorded."""
        if self._is_on and self.profiler.current_action.name == "NONE":
            self._device.begin()

    def _look_at_workers(self, before: str) -> None:
        """Notes their time so far if the step that begins is the first recorded one."""
        if self._is_on and self.profiler.current_action.name.startswith("RECORD") and before != "RECORD":
            unless_it_fails(_WORKERS, self._workers.begin)

    def stop(self) -> None:
        """Ends the recording, and adds the time of the steps after it to the last side file."""
        self.end_mark()
        if not self._is_on:
            return
        leave = partial(self.profiler.__exit__, None, None, None)
        unless_it_fails("the last steps", leave, "so what was being recorded is lost")
        unless_it_fails("the time of unrecorded steps", self._complete)
        if self._side_file is None and self._steps < self._cycle.needed:
            self._say_too_few()

    def _say_too_few(self) -> None:
        marked = f"{self._steps} step was marked" if self._steps == 1 else f"{self._steps} steps were marked"
        advice = f"Run more steps, or pass their number: `steps={max(self._steps, 1)}`."
        text = f"nothing was recorded: {marked}, and recording takes {self._cycle.needed}. {advice}"
        log_harmless(logging.WARNING, text)

    def _save(self, prof: torch.profiler.profile) -> None:
        with suppress(Exception):  # losses have been logged
            self._handle(prof)

    def _around(self) -> Mapping[str, object]:
        times, faults = self._times_ns, self._faults.found(self._cycle.active)
        on_host = (len(times), round(median(times))) if times else None
        found = unless_it_fails("the device's clock", self._device.found_ns, "steps are timed by the host") or on_host
        steps = {"count": found[0], "median_ns": found[1]} if found else None
        if not self._is_measured:
            self._is_measured, self._machine = True, machine_speed()
        workers = unless_it_fails(_WORKERS, self._workers.found)
        return {"steps": steps, "faults": faults, "workers": workers, "machine": self._machine}

    def _keep_side_file(self, path: Path) -> None:
        self._side_file = path

    def _complete(self) -> None:
        path = self._side_file
        if path is not None and self._times_ns:
            unless_it_fails("the device's clock", self._device.wait, "steps are timed by the host")
            document = json.loads(gzip.decompress(path.read_bytes()))
            write_document(str(path).removesuffix(CAPTURE_SUFFIX), document | self._around())


def _done(act: Callable[[], object]) -> bool:
    act()
    return True


def uses_gpu() -> bool:
    """True if this process has used a GPU of CUDA or ROCm."""
    import torch

    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def wait_for_device() -> None:
    """Returns when the GPU has done all work of this process."""
    import torch

    if uses_gpu():
        torch.cuda.synchronize()
