"""Limits of processor time, wall-clock time and memory for a piece of work, enforced by the operating system.

The more text the work reads, the more it may take, so the limits rise while it reads: only then it shows how much text
is in a file. They hold in processes that have called `enforce`; one that just imports this package is left alone.

On Linux and macOS the kernel counts the processor time of all threads (`RLIMIT_CPU`) and the time on the clock
(`ITIMER_REAL`); on Windows a thread of the process looks at both. Memory is counted on Linux only: private memory that
may be written (`RLIMIT_DATA`), since most of the address space is reserved and never used.
"""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

with suppress(ImportError):  # which Windows lacks
    import resource

LimitKind: TypeAlias = Literal["processor", "wall", "memory"]

LIMITS_OF_TIME: tuple[tuple[str, LimitKind, int], ...] = (("SIGXCPU", "processor", 152), ("SIGALRM", "wall", 142))
"""By which signal a process ends that has reached a limit, and with which code where there are no such signals."""

SIGNALS: Mapping[int, LimitKind] = {
    int(getattr(signal, name)): limit for name, limit, _ in LIMITS_OF_TIME if hasattr(signal, name)
}
EXIT_CODES: Mapping[int, LimitKind] = {} if SIGNALS else {code: limit for _, limit, code in LIMITS_OF_TIME}

COUNTS_MEMORY = sys.platform == "linux"

STEP_BYTES = 1 << 20  # of text, after which the limits rise
_LOOK_S = 0.2  # between looks where there are no signals
LEAST_WAIT_S = 0.001  # a timer of 0 would be none
_THREADS = 8  # that the work may start: 1 reads, up to 4 scan
STACK_BYTES = 8 << 20  # of a thread, where the system sets no limit


class ScaledBound(NamedTuple):
    """So much at once, and so much more for each byte of text that is read."""

    at_once: float
    per_byte: float = 0.0

    def of(self, text_bytes: int) -> float:
        """What it is after so much text."""
        return self.at_once + self.per_byte * text_bytes


class Allowance(msgspec.Struct, frozen=True):
    """What a piece of work may take.

    Attributes:
        processor_s: processor time of all its threads.
        wall_s: time on the clock, also while it waits.
        memory_bytes: memory beyond what its process has when it begins.
    """

    processor_s: ScaledBound
    wall_s: ScaledBound
    memory_bytes: ScaledBound


class LimitReachedError(BaseException):
    """Work has taken all that it may. No `Exception`: whoever passes over failures must not pass over this one."""

    def __init__(self, limit: LimitKind) -> None:
        super().__init__(limit)
        self.limit = limit


def enforce(*, raising: bool = False) -> None:
    """From now on `within` holds in this process; to be called in its main thread.

    Work that reaches a limit of time ends its process at once, whatever that is doing, and says where it was; whoever
    started the process learns the limit by `limit_of`. With `raising`, for a process that goes on afterwards, it is a
    `LimitReachedError` in the main thread instead, as soon as that runs Python; where there are no signals, nothing is
    raised. Work that gets no more memory has a `MemoryError` in both cases.
    """
    _here.is_enforcing = True
    if raising:
        for number in SIGNALS:
            signal.signal(number, _raise)
        return
    if not SIGNALS:
        threading.Thread(target=_keep_looking, daemon=True).start()
        return
    _set_soft_limit(resource.RLIMIT_CORE, 1)  # no dump of all that memory; 0 would not hold where a program takes it
    for number in SIGNALS:
        faulthandler.register(number, chain=True)


@contextmanager
def within(allowance: Allowance) -> Iterator[None]:
    """Work that ends when it has taken what it may; work inside of other work is a part of that."""
    if not _here.is_enforcing or _here.work is not None:
        yield
        return
    inherited = _soft_limits()
    try:
        _here.work = _Work(allowance, inherited)
        _here.work.hold()
        yield
    finally:
        _here.work = None  # from here on nothing is raised
        with _here.changing:
            for kind, soft in inherited.items():
                _set_soft_limit(kind, soft)
            _set_alarm(0)


def has_read(text_bytes: int) -> None:
    """Says that the work has read so much more text, and may take more. From any thread."""
    if _here.work is None:
        return
    with _here.changing:
        if (work := _here.work) is not None:  # it may have ended meanwhile
            work.text_bytes += text_bytes
            if work.text_bytes - work.held_for >= STEP_BYTES:
                work.hold()


def limit_of(code: int) -> LimitKind | None:
    """The limit that ended a process with this code, as `subprocess` tells it; None where it ended otherwise."""
    return SIGNALS.get(-code) or EXIT_CODES.get(code)


def bounds_memory() -> bool:
    """True if work in this process has a limit of memory, so that a `MemoryError` most likely comes of it."""
    return _here.is_enforcing and COUNTS_MEMORY


def data_bytes() -> int:
    """The private memory of this process that may be written, used or not; 0 where that is not known."""
    return status_bytes("VmData")


def limit_data(most_bytes: float) -> None:
    """Has the system refuse this process more private memory than that, where it can."""
    if COUNTS_MEMORY:
        _set_soft_limit(resource.RLIMIT_DATA, most_bytes)


def status_bytes(key: str) -> int:
    """A size that Linux tells of this process (`VmRSS`, `VmData`, …); 0 where it does not."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return 0


class _Work:
    """What this process does now: what it may take, what was taken before, how much text it has read."""

    def __init__(self, allowance: Allowance, inherited: Mapping[int, int]) -> None:
        self.text_bytes = 0
        self.held_for = 0
        self._allowance = allowance
        self._inherited = inherited
        self._processor_s = time.process_time()
        self._began_s = time.monotonic()
        self._data_bytes = data_bytes()

    def hold(self) -> None:
        """Sets the limits for what was read so far."""
        self.held_for = self.text_bytes
        _set_alarm(max(self.wall_left_s, LEAST_WAIT_S))
        if not SIGNALS:
            return
        limits = {resource.RLIMIT_CPU: self._processor_s + self._allowance.processor_s.of(self.text_bytes)}
        if COUNTS_MEMORY and self._data_bytes:
            stacks = _THREADS * _stack_bytes()
            limits[resource.RLIMIT_DATA] = self._data_bytes + stacks + self._allowance.memory_bytes.of(self.text_bytes)
        for kind, most in limits.items():
            _set_soft_limit(kind, min(most, _comparable(self._inherited[kind])))

    @property
    def processor_left_s(self) -> float:
        return self._processor_s + self._allowance.processor_s.of(self.text_bytes) - time.process_time()

    @property
    def wall_left_s(self) -> float:
        return self._began_s + self._allowance.wall_s.of(self.text_bytes) - time.monotonic()


class _Process:
    """This process: whether it keeps to limits, and the work that it does."""

    def __init__(self) -> None:
        self.is_enforcing = False
        self.work: _Work | None = None
        self.changing = threading.Lock()


_here = _Process()


def _raise(number: int, _frame: FrameType | None) -> None:
    if _here.work is not None:  # else it had ended when the signal came
        raise LimitReachedError(SIGNALS[number])


def _keep_looking() -> None:
    """Ends the process when its work has reached a limit, as soon as Python runs."""
    while True:
        time.sleep(_LOOK_S)
        work = _here.work
        left_s = {} if work is None else {"processor": work.processor_left_s, "wall": work.wall_left_s}
        for _, limit, code in LIMITS_OF_TIME:
            if left_s.get(limit, 1) <= 0:
                faulthandler.dump_traceback()
                os._exit(code)


def _soft_limits() -> dict[int, int]:
    if not SIGNALS:
        return {}
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_DATA) if COUNTS_MEMORY else (resource.RLIMIT_CPU,)
    return {kind: resource.getrlimit(kind)[0] for kind in kinds}


def _set_soft_limit(kind: int, most: float) -> None:
    """Leaves the hard limit as it is, since the soft one has to rise again."""
    hard = resource.getrlimit(kind)[1]
    soft = min(_comparable(most), _comparable(hard))
    resource.setrlimit(kind, (resource.RLIM_INFINITY if math.isinf(soft) else math.ceil(soft), hard))


def _comparable(limit: float) -> float:
    """A limit as a number that is larger than others where there is none."""
    return math.inf if limit in {-1, resource.RLIM_INFINITY} else limit


def _set_alarm(after_s: float) -> None:
    if SIGNALS:
        signal.setitimer(signal.ITIMER_REAL, after_s)


def _stack_bytes() -> int:
    """What a new thread's stack takes."""
    soft = _comparable(resource.getrlimit(resource.RLIMIT_STACK)[0])
    return STACK_BYTES if math.isinf(soft) else int(soft)
