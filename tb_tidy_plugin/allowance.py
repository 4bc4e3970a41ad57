"""Limits of processor time, wall time and memory for a piece of work, enforced by the operating system.

Work that reads more text may take more, so the limits rise while it reads: only reading shows how much text is in a
file. They hold in processes that have called `enforce`; a process that only imports this package has no limits.

On Linux and macOS the kernel counts the processor time of all threads (`RLIMIT_CPU`) and the wall time
(`ITIMER_REAL`); on Windows a thread of the process checks both. Memory is counted on Linux only: private writable
memory (`RLIMIT_DATA`), since most of the address space is reserved and never used.
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

with suppress(ImportError):  # missing on Windows
    import resource

LimitKind: TypeAlias = Literal["processor", "wall", "memory"]

LIMITS_OF_TIME: tuple[tuple[str, LimitKind, int], ...] = (("SIGXCPU", "processor", 152), ("SIGALRM", "wall", 142))
"""The signal that ends a process at each limit, and its exit code without such signals."""

SIGNALS: Mapping[int, LimitKind] = {
    int(getattr(signal, name)): limit for name, limit, _ in LIMITS_OF_TIME if hasattr(signal, name)
}
EXIT_CODES: Mapping[int, LimitKind] = {} if SIGNALS else {code: limit for _, limit, code in LIMITS_OF_TIME}

COUNTS_MEMORY = sys.platform == "linux"

STEP_BYTES = 1 << 20  # of text, after which the limits rise
_LOOK_S = 0.2  # between checks if there are no signals
LEAST_WAIT_S = 0.001  # a timer of 0 would be off
_THREADS = 8  # that the work may start: 1 reads, up to 4 scan
STACK_BYTES = 8 << 20  # of a thread, if the system sets no limit


class ScaledBound(NamedTuple):
    """A fixed amount, and an amount for each byte of text that is read."""

    at_once: float
    per_byte: float = 0.0

    def of(self, text_bytes: int) -> float:
        """The bound after this much text."""
        return self.at_once + self.per_byte * text_bytes


class Allowance(msgspec.Struct, frozen=True):
    """Limits of a piece of work.

    Attributes:
        processor_s: processor time of all its threads.
        wall_s: wall time, including waits.
        memory_bytes: memory beyond that of its process at the start.
    """

    processor_s: ScaledBound
    wall_s: ScaledBound
    memory_bytes: ScaledBound


class LimitReachedError(BaseException):
    """Work has reached a limit. Not an `Exception`, so that handlers of other failures do not swallow it."""

    def __init__(self, limit: LimitKind) -> None:
        super().__init__(limit)
        self.limit = limit


def enforce(*, raising: bool = False) -> None:
    """Makes `within` effective in this process; to be called in its main thread.

    Work that reaches a time limit ends its process at once, whatever that is doing, and prints where it was; the parent
    process learns the limit from `limit_of`. With `raising`, for a process that goes on afterwards, it is a
    `LimitReachedError` in the main thread instead, as soon as that runs Python; without signals, nothing is raised.
    Work that gets no more memory has a `MemoryError` in both cases.
    """
    _here.is_enforcing = True
    if raising:
        for number in SIGNALS:
            signal.signal(number, _raise)
        return
    if not SIGNALS:
        threading.Thread(target=_keep_looking, daemon=True).start()
        return
    _set_soft_limit(resource.RLIMIT_CORE, 1)  # no dump of all that memory; 0 would not apply if a program handles it
    for number in SIGNALS:
        faulthandler.register(number, chain=True)


@contextmanager
def within(allowance: Allowance) -> Iterator[None]:
    """Work that ends when it reaches its allowance; nested work is a part of the outer one."""
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
    """Reports that the work has read this much more text, and may take more. From any thread."""
    if _here.work is None:
        return
    with _here.changing:
        if (work := _here.work) is not None:  # it may have ended meanwhile
            work.text_bytes += text_bytes
            if work.text_bytes - work.held_for >= STEP_BYTES:
                work.hold()


def limit_of(code: int) -> LimitKind | None:
    """The limit that ended a process with this exit code of `subprocess`; None if it ended otherwise."""
    return SIGNALS.get(-code) or EXIT_CODES.get(code)


def bounds_memory() -> bool:
    """True if work in this process has a memory limit, so that a `MemoryError` most likely comes from it."""
    return _here.is_enforcing and COUNTS_MEMORY


def data_bytes() -> int:
    """The private writable memory of this process, used or not; 0 if unknown."""
    return status_bytes("VmData")


def limit_data(most_bytes: float) -> None:
    """Limits this process's private memory to `most_bytes`, if the system can."""
    if COUNTS_MEMORY:
        _set_soft_limit(resource.RLIMIT_DATA, most_bytes)


def status_bytes(key: str) -> int:
    """A size of this process on Linux (`VmRSS`, `VmData`, …); 0 if it is not given."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1]) * 1024
    return 0


class _Work:
    """Current work of this process: its allowance, what was used before, and the text it has read."""

    def __init__(self, allowance: Allowance, inherited: Mapping[int, int]) -> None:
        self.text_bytes = 0
        self.held_for = 0
        self._allowance = allowance
        self._inherited = inherited
        self._processor_s = time.process_time()
        self._began_s = time.monotonic()
        self._data_bytes = data_bytes()

    def hold(self) -> None:
        """Sets the limits for the text read so far."""
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
    """State of this process: its enforcement of limits, and its current work."""

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
    """Keeps the hard limit, since the soft one must rise again."""
    hard = resource.getrlimit(kind)[1]
    soft = min(_comparable(most), _comparable(hard))
    resource.setrlimit(kind, (resource.RLIM_INFINITY if math.isinf(soft) else math.ceil(soft), hard))


def _comparable(limit: float) -> float:
    """A limit as a number; infinity for no limit."""
    return math.inf if limit in {-1, resource.RLIM_INFINITY} else limit


def _set_alarm(after_s: float) -> None:
    if SIGNALS:
        signal.setitimer(signal.ITIMER_REAL, after_s)


def _stack_bytes() -> int:
    """Size of a new thread's stack in bytes."""
    soft = _comparable(resource.getrlimit(resource.RLIMIT_STACK)[0])
    return STACK_BYTES if math.isinf(soft) else int(soft)
