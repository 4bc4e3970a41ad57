"""Programs that run their steps in turns: each is held between two steps while the other one runs."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from tb_tidy_plugin.capture.verified import CHANNEL
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.words.errors import TidyError

_MOST_LINES = 20  # of a program's output, if it broke
LONGEST_ANSWER = 64 << 20
_ENDS_S = 5.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class VerifyError(TidyError):
    """A program cannot be run, broke, or does not mark its steps."""


class Results(msgspec.Struct, frozen=True):
    """Results of the first steps: losses, a hash of all parameters, and the sum of each parameter."""

    losses: list[float]
    digest: str
    sums: list[float]


class Turn(msgspec.Struct, frozen=True):
    """The steps of one turn."""

    steps: int
    seconds: float
    peak_bytes: int


class Running(msgspec.Struct):
    """A program that waits for its next turn.

    Attributes:
        name: `before` or `after`.
        initial: a hash of its parameters before the first step.
    """

    name: str
    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    answers: int
    output: IO[bytes]
    limit_s: float
    initial: str = ""
    _unread: bytes = b""

    def ready(self) -> None:
        """Waits until it starts its first step.

        Raises:
            VerifyError: it ends before, or does not start in time.
        """
        self.initial = str(self._answer()["ready"])

    def results(self, steps: int) -> Results:
        """Results of its next steps.

        Raises:
            VerifyError: it ended, or the steps were not done in time.
        """
        return convert(self._ask({"results": steps}), Results)

    def turn(self, seconds: float) -> Turn:
        """Runs steps for at least this many seconds.

        Raises:
            VerifyError: it ended, or the steps were not done in time.
        """
        return convert(self._ask({"turn": seconds}), Turn)

    def end(self) -> None:
        """Ends it and everything that it has started.

        A program that waits for its turn ends with its orders, even if it has a handler for SIGTERM: the step at which
        such a handler would end it never comes.
        """
        with suppress(OSError):
            self.orders.close()
        with suppress(OSError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(_ENDS_S)
        with suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.answers)

    def _ask(self, order: Mapping[str, float]) -> dict[str, Any]:
        try:
            self.orders.write(json.dumps(order).encode() + b"\n")
            self.orders.flush()
        except BrokenPipeError:
            raise self._broken("ended") from None
        answer = self._answer()
        if "ended" in answer:
            raise VerifyError(
                f"The program {self.name} ran too few steps.",
                "Let it run more steps, or use fewer `--rounds` and `--steps` and a shorter `--turn`.",
            )
        return answer

    def _answer(self) -> dict[str, Any]:
        deadline = time.monotonic() + self.limit_s
        while b"\n" not in self._unread:
            readable, _, _ = select.select([self.answers], [], [], 0.2)
            data = os.read(self.answers, 1 << 16) if readable else b""
            self._unread += data
            if (readable and not data) or (not readable and self.process.poll() is not None):
                raise self._broken("ended")
            if time.monotonic() > deadline or len(self._unread) > LONGEST_ANSWER:
                raise self._broken(f"finished no step within {self.limit_s:g} s")
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise self._broken("sent an unexpected answer") from None
        return answer

    def _broken(self, what: str) -> VerifyError:
        self.output.seek(0)
        text = _COLOURS.sub("", self.output.read().decode("utf-8", "replace"))
        said = [line.expandtabs() for line in text.splitlines()[-_MOST_LINES:]]
        advice = "Mark its steps with `tidy_profile` or a callback of `tb_tidy_plugin.capture` (docs/capture.md)."
        return VerifyError(f"The program {self.name} {what}.", advice, said)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Meanwhile Ctrl-C, SIGTERM and SIGHUP, unless ignored, end programs, remove folders, and exit as in a shell.

    The exit code is 128 and the signal's number; further signals do not interrupt the removal.
    """
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    known = {number: handler for number, handler in known.items() if handler != signal.SIG_IGN}

    def end(number: int, _: object) -> None:
        for each in known:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in known:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler or signal.SIG_DFL)


@contextmanager
def running(name: str, folder: Path, command: Sequence[str], limit_s: float) -> Iterator[Running]:
    """The program, started in `folder`; it ends with the block.

    Raises:
        VerifyError: it cannot be started.
    """
    order_out, order_in = os.pipe()
    answer_out, answer_in = os.pipe()
    environment = {**os.environ, CHANNEL: f"{order_out},{answer_in}", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(order_out, answer_in),
                start_new_session=True,
            )
        except OSError as problem:
            for each in (order_in, answer_out):
                os.close(each)
            reason = problem.strerror or type(problem).__name__
            raise VerifyError(f"`{command[0]}` cannot be started: {reason}.", "Check the command after `--`.") from None
        finally:
            os.close(order_out)
            os.close(answer_in)
        program = Running(name, process, os.fdopen(order_in, "wb"), answer_out, output, limit_s)
        try:
            yield program
        finally:
            program.end()
