"""Benchmarks started in the tab: one at a time, the others wait; each can be watched and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from itertools import count

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import NO_TORCH, MeasuringProgress, MeasuringRequest
from tb_tidy_plugin.benchmarks.runner import CANCELLED, PairMeasurement
from tb_tidy_plugin.benchmarks.store import StoreError, keep
from tb_tidy_plugin.plugin.models import BenchmarkRefusal, BenchmarkRequest, BenchmarkState, ErrorInfo
from tb_tidy_plugin.words.errors import NotFoundError, TidyError

MOST_WAITING = 20
MOST_REMEMBERED = 200
_HEARTBEAT_S = 10.0  # a stream of progress sends a line this often, so that it ends if its reader is gone
_OVER = frozenset({"done", "failed", "cancelled"})
NOT_KEPT = "The result is shown until the server ends, but is not part of any saving."
LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})

OFF = BenchmarkRefusal(
    reason="off",
    message="Benchmarks are off.",
    advice="To run them, start TensorBoard with `--torchtidy_benchmarks=local`, or `tb-tidy serve --benchmarks`.",
)
REACHABLE = BenchmarkRefusal(
    reason="reachable",
    message="TensorBoard can be reached from other machines, whose users could keep this one busy.",
    advice="Start it without `--bind_all` and `--host`, or allow it anyway with `--torchtidy_benchmarks=any`.",
)
WITHOUT_TORCH = BenchmarkRefusal(
    reason="no_torch",
    message=NO_TORCH.error,
    advice="Install it, or `pip install 'tb-tidy-plugin[bench]'`, and start the server again.",
)


class BenchmarksRefusedError(TidyError):
    """Benchmarks may not be run, or not now."""


def refusal_of(flag: str, host: str, *, bind_all: bool, has_torch: bool) -> BenchmarkRefusal | None:
    """The reason why the tab cannot run benchmarks: TensorBoard's flags, or missing PyTorch; None if it can."""
    if flag not in {"any", "local"}:
        return OFF
    if flag == "local" and (bind_all or host not in LOCAL):
        return REACHABLE
    return None if has_torch else WITHOUT_TORCH


class BenchmarkQueue:
    """All methods may be called from any thread."""

    def __init__(self, refusal: BenchmarkRefusal | None = OFF) -> None:
        """`refusal` says why nothing may run; None if benchmarks may."""
        self.refusal = refusal
        self.devices: tuple[str, ...] = ()  # those that PyTorch sees here, by the last benchmark
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._states: dict[int, BenchmarkState] = {}
        self._runs: dict[int, PairMeasurement] = {}
        self._is_running = False

    def add(self, asked: BenchmarkRequest, request: MeasuringRequest) -> BenchmarkState:
        """Adds a pair to the queue; returns the existing job if the pair already waits or runs.

        Args:
            asked: the finding that a client has named.
            request: its statements, which this process has made, and how to measure them.

        Raises:
            BenchmarksRefusedError: benchmarks are off, or too many wait.
        """
        if self.refusal:
            raise BenchmarksRefusedError(self.refusal.message, self.refusal.advice)
        with self._changed:
            for job in self._runs:
                if _names(self._states[job]) == _names(asked):
                    return self._described(job)
            if len(self._runs) >= MOST_WAITING:
                raise BenchmarksRefusedError(f"{MOST_WAITING} benchmarks are already waiting.", "Wait, or cancel some.")
            job = next(self._numbers)
            state = BenchmarkState(job=job, run=asked.run, worker=asked.worker, span=asked.span, finding=asked.finding)
            self._states[job], self._runs[job] = state, PairMeasurement(request)
            for old in [known for known in self._states if known not in self._runs][:-MOST_REMEMBERED]:
                del self._states[old]
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._work, daemon=True, name="torchtidy-benchmarks").start()
            return self._described(job)

    def cancel(self, job: int) -> BenchmarkState:
        """Ends a benchmark, or removes it from the queue; a finished one stays as it is.

        Raises:
            NotFoundError: there is no such benchmark.
        """
        with self._changed:
            if job not in self._states:
                raise NotFoundError(f"There is no benchmark {job}.", "Start it again.")
            run = self._runs.get(job)
            if run is not None and self._ahead_of(job):
                self._finish(job, CANCELLED)
        if run is not None:
            run.cancel()
        with self._changed:
            return self._described(job)

    @property
    def is_busy(self) -> bool:
        """True if a measurement runs, which other work would disturb."""
        with self._changed:
            return bool(self._runs)

    def states(self, run: str, worker: str, span: str) -> list[BenchmarkState]:
        """The benchmarks of one profile, in the order of their requests."""
        with self._changed:
            return [
                self._described(job) for job, each in self._states.items() if _names(each)[:3] == (run, worker, span)
            ]

    def progress(self, job: int) -> Iterator[BenchmarkState]:
        """The state now and after each change, until the benchmark is over.

        Raises:
            NotFoundError: at once, if there is no such benchmark.
        """
        with self._changed:
            if job not in self._states:
                raise NotFoundError(f"There is no benchmark {job}.", "Start it again.")
        return self._progress(job)

    def _progress(self, job: int) -> Iterator[BenchmarkState]:
        last: BenchmarkState | None = None
        while last is None or last.state not in _OVER:
            with self._changed:
                self._changed.wait_for(partial(self._has_changed, job, last), _HEARTBEAT_S)
                if job not in self._states:
                    return
                last = self._described(job)
            yield last

    def _has_changed(self, job: int, last: BenchmarkState | None) -> bool:
        return job not in self._states or self._described(job) != last

    def _work(self) -> None:
        """Measures one after the other until none is left."""
        while True:
            with self._changed:
                job = next(iter(self._runs), None)
                if job is None:
                    self._is_running = False
                    return
                run = self._runs[job]
            result = run.result(partial(self._note, job))
            problem = _keep(result) if isinstance(result, Measurement) else None
            with self._changed:
                self._finish(job, result, problem)

    def _finish(self, job: int, result: Measurement | NotMeasured, problem: ErrorInfo | None = None) -> None:
        del self._runs[job]
        self._states[job] = _finished(self._states[job], result, problem)
        self._changed.notify_all()

    def _described(self, job: int) -> BenchmarkState:
        return msgspec.structs.replace(self._states[job], ahead=self._ahead_of(job))

    def _ahead_of(self, job: int) -> int:
        """Number of benchmarks before this one; 0 for a finished one."""
        return list(self._runs).index(job) if job in self._runs else 0

    def _note(self, job: int, progress: MeasuringProgress) -> None:
        with self._changed:
            self.devices = progress.devices or self.devices
            self._states[job] = msgspec.structs.replace(
                self._states[job], state="measuring", stage=progress.stage, fraction=progress.fraction
            )
            self._changed.notify_all()


def _names(of: BenchmarkState | BenchmarkRequest) -> tuple[str, str, str, str]:
    return (of.run, of.worker, of.span, of.finding)


def _keep(measurement: Measurement) -> ErrorInfo | None:
    """Stores the measurement; returns the reason if that fails."""
    try:
        keep(measurement)
    except StoreError as problem:
        return ErrorInfo(code=507, message=f"{problem.error} {NOT_KEPT}", advice=problem.advice)
    return None


def _finished(state: BenchmarkState, result: Measurement | NotMeasured, problem: ErrorInfo | None) -> BenchmarkState:
    if isinstance(result, Measurement):
        return msgspec.structs.replace(state, state="done", stage="", fraction=1.0, measurement=result, problem=problem)
    outcome = "cancelled" if result == CANCELLED else "failed"
    problem = ErrorInfo(code=422, message=result.error, advice=result.advice)
    return msgspec.structs.replace(state, state=outcome, stage="", problem=problem)
