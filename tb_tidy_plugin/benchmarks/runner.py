"""Measurements started from another process: one process group each, with a time limit, which can be cancelled."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from typing import TypeAlias

import msgspec

from tb_tidy_plugin.benchmarks.measurement import Measurement, NotMeasured
from tb_tidy_plugin.benchmarks.process import Measured, MeasuringProgress, MeasuringRequest, Message
from tb_tidy_plugin.benchmarks.statements import complaint_about
from tb_tidy_plugin.system import child
from tb_tidy_plugin.system.decoders import decode

OnProgress: TypeAlias = Callable[[MeasuringProgress], object]

BENCHMARK_COMMAND = child.command_for("tb_tidy_plugin.benchmarks.process")

LIMIT_S = 120.0
"""Seconds beyond the budget: to start PyTorch, to compile statements, and to run slow ones a few times."""

COMPLAINT_LENGTH = 1000

MEND = "Write `benchmark` of the rule with what docs/benchmarks.md lists."
CANCELLED = NotMeasured("The measurement was cancelled.", "Start it again.")
_TRY_AGAIN = "Run `tb-tidy bench` on the command line to see its output."


def has_torch() -> bool:
    """True if PyTorch can be imported, without importing it."""
    try:
        return find_spec("torch") is not None
    except ValueError:  # its import is blocked
        return False


class PairMeasurement:
    """The measurement of one pair. Any thread may cancel it, before, during and after its run."""

    def __init__(self, request: MeasuringRequest, limit_s: float = LIMIT_S) -> None:
        self._request = request
        self._limit_s = limit_s + request.budget_s
        self._child = child.Child(BENCHMARK_COMMAND, limit_s=self._limit_s, whole_group=True)

    def result(self, on_progress: OnProgress = lambda _: None) -> Measurement | NotMeasured:
        """Measures; describes every failure in words."""
        if complaint := complaint_about(self._request.pair):
            return NotMeasured(f"The statements are not run: {complaint}.", MEND)
        last: Measurement | NotMeasured | None = None
        try:
            with suppress(msgspec.MsgspecError), self._child.asked(msgspec.json.encode(self._request)) as lines:
                last = _last(lines, on_progress)  # a truncated line was written by a process that was killed
        except child.StartError as problem:
            return NotMeasured(f"The measurement could not be started: {problem}.", "Try again.")
        return last or self._died(self._child.ended)

    def cancel(self) -> None:
        """Ends the measurement, or prevents its start."""
        self._child.stop()

    def _died(self, ended: child.Ended | None) -> NotMeasured:
        """The failure of a process that ended without a last message, or was not started."""
        if ended is None or self._child.is_stopped:
            return CANCELLED
        if self._child.is_late:
            return NotMeasured(
                f"The measurement took more than {self._limit_s:g} s.", "Measure on a less busy machine."
            )
        lines = ended.complaint[-COMPLAINT_LENGTH:].splitlines()
        said = f" {lines[-1]}" if lines else ""
        if -ended.code == getattr(signal, "SIGKILL", None):
            return NotMeasured("The measurement was killed, most likely because memory ran out.", "Free memory.")
        name = next((known.name for known in signal.Signals if known.value == -ended.code), f"code {ended.code}")
        return NotMeasured(f"The measurement ended with {name}.{said}", _TRY_AGAIN)


def _last(lines: Iterable[bytes], on_progress: OnProgress) -> Measurement | NotMeasured | None:
    """The last message; None if it never came."""
    for line in lines:
        message: Message = decode(line, Message)
        if not isinstance(message, MeasuringProgress):
            return message.measurement if isinstance(message, Measured) else message
        on_progress(message)
    return None
