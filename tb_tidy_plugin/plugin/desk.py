"""Benchmarks that the tab asks for: one at a time, the others wait; each may be watched and cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import Progress, Request
from tb_tidy_plugin.benchmarks.runner import CANCELLED, Run
from tb_tidy_plugin.benchmarks.store import StoreError, keep
from tb_tidy_plugin.errors import NotFoundError, TidyError
from tb_tidy_plugin.plugin.payloads import BenchmarkRequest, BenchmarkState, ErrorInfo
from tb_tidy_plugin.plugin.worker import PairOf

MOST_WAITING = 20
MOST_REMEMBERED = 200
HEARTBEAT_S = 10.0  # a stream of progress says something this often, so that one without a reader ends
OVER = frozenset({"done", "failed", "cancelled"})
LOCAL = frozenset({"", "localhost", "127.0.0.1", "::1"})

OFF = "Benchmarks are off: start TensorBoard with `--torchtidy_benchmarks=local`."
REACHABLE = "TensorBoard can be reached from other machines, whose users could keep this one busy."


class BenchmarksRefusedError(TidyError):
    """Benchmarks may not be run, or not now."""


def refusal_of(flag: str, host: str, *, bind_all: bool) -> str | None:
    """Why TensorBoard's flags let the tab run no benchmarks; None where they do."""
    if flag == "any":
        return None
    if flag != "local":
        return OFF
    return REACHABLE if bind_all or host not in LOCAL else None


class Desk:
    """All methods may be called from any thread."""

    def __init__(self, refusal: str | None = OFF) -> None:
        """`refusal` says why nothing may be run, None where it may."""
        self.refusal = refusal
        self._changed = threading.Condition()
        self._numbers = count(1)
        self._states: dict[int, BenchmarkState] = {}
        self._runs: dict[int, Run] = {}
        self._is_running = False

    def add(self, asked: BenchmarkRequest, pair: PairOf) -> BenchmarkState:
        """Puts a pair in the queue.

        Raises:
            BenchmarksRefusedError: benchmarks are off, or too many wait.
        """
        if self.refusal:
            raise BenchmarksRefusedError(self.refusal, "Run `tb-tidy bench` instead; `=any` allows it all the same.")
        with self._changed:
            if len(self._runs) >= MOST_WAITING:
                raise BenchmarksRefusedError(f"{MOST_WAITING} benchmarks wait already.", "Wait, or cancel some.")
            job = next(self._numbers)
            state = BenchmarkState(job=job, run=asked.run, worker=asked.worker, span=asked.span, finding=asked.finding)
            request = Request(
                rule=pair.rule, pair=pair.statements, asked=asked.device, preferred=pair.kind, budget_s=asked.budget_s
            )
            self._states[job], self._runs[job] = state, Run(request)
            for old in [known for known in self._states if known not in self._runs][:-MOST_REMEMBERED]:
                del self._states[old]
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._work, daemon=True, name="torchtidy-benchmarks").start()
            return state

    def cancel(self, job: int) -> BenchmarkState:
        """Ends a benchmark, or takes it out of the queue; one that is over stays as it is.

        Raises:
            NotFoundError: there is no such benchmark.
        """
        with self._changed:
            if job not in self._states:
                raise NotFoundError(f"There is no benchmark {job}.", "Start it again.")
            run = self._runs.get(job)
        if run is not None:
            run.cancel()
        with self._changed:
            return self._states[job]

    def states(self, run: str, worker: str, span: str) -> list[BenchmarkState]:
        """The benchmarks of one profile, in the order in which they were asked for."""
        with self._changed:
            return [each for each in self._states.values() if (each.run, each.worker, each.span) == (run, worker, span)]

    def progress(self, job: int) -> Iterator[BenchmarkState]:
        """The state now and whenever it changes, until the benchmark is over.

        Raises:
            NotFoundError: at once, where there is no such benchmark.
        """
        with self._changed:
            if job not in self._states:
                raise NotFoundError(f"There is no benchmark {job}.", "Start it again.")
        return self._progress(job)

    def _progress(self, job: int) -> Iterator[BenchmarkState]:
        last: BenchmarkState | None = None
        while last is None or last.state not in OVER:
            with self._changed:
                self._changed.wait_for(lambda before=last: self._states.get(job) is not before, HEARTBEAT_S)  # type: ignore[misc]
                last = self._states.get(job)
            if last is None:
                return
            yield last

    def _work(self) -> None:
        """Measures one after the other until none is left."""
        while True:
            with self._changed:
                job = next(iter(self._runs), None)
                if job is None:
                    self._is_running = False
                    return
                run = self._runs[job]
            result = run.result(lambda progress, of=job: self._note(of, progress))  # type: ignore[misc]
            if isinstance(result, Measurement):
                result = _kept(result)
            with self._changed:
                del self._runs[job]
                self._states[job] = _finished(self._states[job], result)
                self._changed.notify_all()

    def _note(self, job: int, progress: Progress) -> None:
        with self._changed:
            self._states[job] = msgspec.structs.replace(
                self._states[job], state="measuring", stage=progress.stage, fraction=progress.fraction
            )
            self._changed.notify_all()


def _kept(measurement: Measurement) -> Measurement | NotMeasured:
    try:
        keep(measurement)
    except StoreError as problem:
        return NotMeasured(problem.error, problem.advice)
    return measurement


def _finished(state: BenchmarkState, result: Measurement | NotMeasured) -> BenchmarkState:
    if isinstance(result, Measurement):
        return msgspec.structs.replace(state, state="done", stage="", fraction=1.0, measurement=result)
    problem = ErrorInfo(code=422, message=result.error, advice=result.advice)
    outcome = "cancelled" if result == CANCELLED else "failed"
    return msgspec.structs.replace(state, state=outcome, stage="", problem=problem)
