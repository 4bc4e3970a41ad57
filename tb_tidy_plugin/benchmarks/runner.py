"""Measurements started from another process: one process group each, with a limit of time, which may be cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import IO, TypeAlias

import msgspec

from tb_tidy_plugin import child
from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import Measured, Message, Progress, Request
from tb_tidy_plugin.benchmarks.statements import complaint_about

OnProgress: TypeAlias = Callable[[Progress], object]

COMMAND = child.command_for("tb_tidy_plugin.benchmarks.process")

LIMIT_S = 120.0
"""Beside the budget: to start PyTorch, to compile what a statement compiles, and to run slow statements a few times."""

COMPLAINT_BYTES = 1000

MEND = "Write `benchmark` of the rule with what docs/benchmarks.md lists."
CANCELLED = NotMeasured("The measurement was cancelled.", "Start it again.")
TRY_AGAIN = "Run `tb-tidy bench` on the command line to see what it says."


def has_torch() -> bool:
    """Whether PyTorch could be imported; nothing of it is."""
    try:
        return find_spec("torch") is not None
    except ValueError:  # it is kept from being imported
        return False


class Run:
    """The measurement of one pair. May be cancelled from any thread, before, while and after it runs."""

    def __init__(self, request: Request, limit_s: float = LIMIT_S) -> None:
        self._request = request
        self._limit_s = limit_s + request.budget_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._cancelled = False
        self._late = False

    def result(self, on_progress: OnProgress = lambda _: None) -> Measurement | NotMeasured:
        """Measures; whatever becomes of it is told in words."""
        if complaint := complaint_about(self._request.pair):
            return NotMeasured(f"The statements are not run: {complaint}.", MEND)
        with ExitStack() as opened:
            try:
                errors = opened.enter_context(child.complaints())
                process = self._start(errors)
            except OSError as problem:
                reason = problem.strerror or type(problem).__name__
                return NotMeasured(f"The measurement could not be started: {reason}.", "Try again.")
            if process is None:
                return CANCELLED
            timer = threading.Timer(self._limit_s, self._end_late)
            timer.start()
            try:
                with process:
                    last = self._listening(process, on_progress)
            finally:
                timer.cancel()
                with self._lock:
                    self._process = None  # its number may be another's from now on
            return last or self._died(process.returncode, errors)

    def cancel(self) -> None:
        """Ends the measurement, or keeps it from starting."""
        with self._lock:
            self._cancelled = True
        self._kill()

    def _start(self, errors: IO[bytes]) -> subprocess.Popen[bytes] | None:
        """The process, None where it is no longer wanted."""
        with self._lock:
            if self._cancelled:
                return None
            self._process = child.start(COMMAND, errors)
            return self._process

    def _listening(self, process: subprocess.Popen[bytes], on_progress: OnProgress) -> Measurement | NotMeasured | None:
        """The last message; all of the group is ended before the process is waited for, while its number is its own."""
        try:
            return self._listen(process, on_progress)
        finally:
            self._kill()

    def _listen(self, process: subprocess.Popen[bytes], on_progress: OnProgress) -> Measurement | NotMeasured | None:
        """The last message, None where it never came. The process's input stays open meanwhile."""
        assert process.stdout is not None
        try:
            child.ask(process, msgspec.json.encode(self._request))
            for line in process.stdout:
                message: Message = msgspec.json.decode(line, type=Message)
                if isinstance(message, Progress):
                    on_progress(message)
                else:
                    return message.measurement if isinstance(message, Measured) else message
        except (BrokenPipeError, msgspec.MsgspecError):  # it was killed while it wrote, or before it read
            return None
        return None

    def _end_late(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        """Ends the process and all that it has started, such as compilers and workers of loaders."""
        with self._lock:
            if self._process is None:
                return
            with suppress(ProcessLookupError, PermissionError):  # all are gone; macOS says so by the second
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def _died(self, code: int, errors: IO[bytes]) -> NotMeasured:
        """What it means that the process ended without a last message."""
        if self._cancelled:
            return CANCELLED
        if self._late:
            return NotMeasured(
                f"The measurement took more than {self._limit_s:g} s.", "Measure on a machine with less to do."
            )
        lines = child.said(errors, COMPLAINT_BYTES).splitlines()
        said = f" {lines[-1]}" if lines else ""
        if -code == getattr(signal, "SIGKILL", None):
            return NotMeasured("The measurement was killed, most likely because memory ran out.", "Free memory.")
        name = next((known.name for known in signal.Signals if known.value == -code), f"code {code}")
        return NotMeasured(f"The measurement ended with {name}.{said}", TRY_AGAIN)
