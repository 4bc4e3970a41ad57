"""Limits of processor time, wall time and memory for a piece of work, enforced by the operating system.

Work that reads more text may take more, so the limits rise while it reads: only reading shows how much text is in a
file. They hold in processes that have called `enforce`; a process that only imports this package has no limits.

On Linux and macOS the kernel counts the processor time of all threads (`RLIMIT_CPU`) and the wall time
(`ITIMER_REAL`). Where a process goes on afterwards, and on Windows, a thread of the process checks both, too: the
kernel may send its signal to a thread that does not run Python, and side threads of the work must end as well. Memory
is counted on Linux only: private writable memory (`RLIMIT_DATA`), since most of the address space is reserved and never
used.
"""

from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec

with suppress(ImportError):  # missing on Windows
    import resource

_P = ParamSpec("_P")
_Result = TypeVar("_Result")

LimitKind: TypeAlias = Literal["processor", "wall", "memory"]

LIMITS_OF_TIME: tuple[tuple[str, LimitKind, int], ...] = (("SIGXCPU", "processor", 152), ("SIGALRM", "wall", 142))
"""The signal that ends a process at each limit, and its exit code without such signals."""

SIGNALS: Mapping[int, LimitKind] = {
    int(getattr(signal, name)): limit for name, limit, _ in LIMITS_OF_TIME if hasattr(signal, name)
}
EXIT_CODES: Mapping[int, LimitKind] = {} if SIGNALS else {code: limit for _, limit, code in LIMITS_OF_TIME}

COUNTS_MEMORY = sys.platform == "linux"

STEP_BYTES = 1 << 20  # of text, after which the limits rise
_LOOK_S = 0.2  # between checks of a thread of the process
_AGAIN_S = 1.0  # between alarms, in case the first one came at a moment at which Python drops exceptions
LEAST_WAIT_S = 0.001  # a timer of 0 would be off
_LONGEST_WAIT_S = 1e9  # systems take no much longer one
_LARGEST_LIMIT = float(1 << 62)  # the system takes no larger number; above it there is no limit
_THREADS = 8  # that the work may start: 1 reads, up to 4 scan
STACK_BYTES = 8 << 20  # of a thread, if the system sets no limit

CONTAINER_MEMORY = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Files with the limit and the use of a container's memory, in version 2 and 1 of control groups."""

MEMORY_SHARE = 0.75
"""Most of the memory that is free when work begins, whatever its allowance: without any, Linux ends some process."""


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


class _ProcessorTimeReachedError(LimitReachedError):
    """Without arguments, as Python makes an exception that one thread raises in another."""

    def __init__(self) -> None:
        super().__init__("processor")


class _WallTimeReachedError(LimitReachedError):
    def __init__(self) -> None:
        super().__init__("wall")


_IN_THREADS: Mapping[LimitKind, type[LimitReachedError]] = {
    "processor": _ProcessorTimeReachedError,
    "wall": _WallTimeReachedError,
}


def enforce(*, raising: bool = False, most_bytes: float = math.inf) -> None:
    """Makes `within` effective in this process; to be called in its main thread.

    Work takes at most `most_bytes` of memory, whatever its allowance, for a process that shares the free memory.

    Work that reaches a time limit ends its process at once, whatever that is doing, and prints where it was; the parent
    process learns the limit from `limit_of`. With `raising`, for a process that goes on afterwards, it is a
    `LimitReachedError` in the main thread and in those of `sharing_limits` instead, as soon as each runs Python. Work
    that gets no more memory has a `MemoryError` in both cases.
    """
    _here.is_enforcing, _here.is_raising, _here.most_bytes = True, raising, most_bytes
    if raising:
        for number in SIGNALS:
            signal.signal(number, _raise)
        return
    if not SIGNALS:
        return
    _set_soft_limit(resource.RLIMIT_CORE, 1)  # no dump of all that memory; 0 would not apply if a program handles it
    for number in SIGNALS:
        faulthandler.register(number, chain=True)


class Held(msgspec.Struct):
    """What holds some work, besides its allowance.

    Attributes:
        free_share_bytes: `MEMORY_SHARE` of the free memory, if the work has reached that and not its allowance.
    """

    free_share_bytes: float | None = None


@contextmanager
def within(allowance: Allowance) -> Iterator[Held]:
    """Work that ends when it reaches its allowance; nested work is a part of the outer one."""
    held = Held()
    if not _here.is_enforcing or _here.work is not None:
        yield held
        return
    inherited = _soft_limits()
    work = _Work(allowance, inherited)
    if not SIGNALS:
        work.threads.add(threading.get_ident())  # the exception comes as in side threads
    try:
        _here.work = work
        work.hold()
        if _here.is_raising or not SIGNALS:
            _here.watch()
        yield held
    except MemoryError:
        held.free_share_bytes = work.free_share_bytes
        raise
    finally:
        while True:
            try:
                _here.work = None  # from here on nothing is raised
                work.leave()
                with _here.changing:
                    for kind, soft in inherited.items():
                        _set_soft_limit(kind, soft)
                    _set_alarm(0)
                break
            except LimitReachedError:  # it came in these lines
                continue


def sharing_limits(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """`function`, for a side thread of the current work of this process: it also ends when that reaches a limit.

    It then raises a `LimitReachedError`.
    """
    work = _here.work
    if work is None:
        return function

    def shared(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        work.join()
        try:
            return function(*args, **kwargs)
        finally:
            while True:
                try:
                    work.leave()
                    break
                except LimitReachedError:  # it came in these lines
                    continue

    return shared


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


def free_bytes(proc: Path = Path("/proc"), control_groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that this machine and this process's container still have free on Linux; 0 if unknown."""
    known = []
    with suppress(OSError, ValueError, StopIteration):
        lines = (proc / "meminfo").read_text("ascii").splitlines()
        known.append(int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10)
    for limit_file, used_file in CONTAINER_MEMORY:
        with suppress(OSError, ValueError):
            limit, used = (int((control_groups / name).read_text("ascii")) for name in (limit_file, used_file))
            known.append(max(limit - used + _reclaimable_bytes((control_groups / used_file).parent), 1))
    return min(known, default=0)


def _reclaimable_bytes(group: Path) -> int:
    """The part of a container's used memory that holds files, which the system frees if it needs memory."""
    with suppress(OSError, ValueError):
        rows = dict(line.split() for line in (group / "memory.stat").read_text("ascii").splitlines())
        return sum(int(rows.get(name, 0)) for name in ("inactive_file", "active_file"))
    return 0


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
        self.threads: set[int] = set()
        self._reached: LimitKind | None = None
        self._allowance = allowance
        self._inherited = inherited
        self._processor_s = time.process_time()
        self._began_s = time.monotonic()
        self._data_bytes = data_bytes()
        self._free_share_bytes = min(MEMORY_SHARE * (free_bytes() or math.inf), _here.most_bytes)

    def hold(self) -> None:
        """Sets the limits for the text read so far."""
        self.held_for = self.text_bytes
        _set_alarm(max(self.wall_left_s, LEAST_WAIT_S))
        if not SIGNALS:
            return
        limits = {resource.RLIMIT_CPU: self._processor_s + self._allowance.processor_s.of(self.text_bytes)}
        if COUNTS_MEMORY and self._data_bytes:
            stacks = _THREADS * _stack_bytes()
            most_bytes = min(self._allowance.memory_bytes.of(self.text_bytes), self._free_share_bytes)
            limits[resource.RLIMIT_DATA] = self._data_bytes + stacks + most_bytes
        for kind, most in limits.items():
            _set_soft_limit(kind, min(most, _comparable(self._inherited[kind])))

    def join(self) -> None:
        """Lets this thread share the limits; raises at once if one is reached."""
        with _here.changing:
            if self._reached is not None:
                raise LimitReachedError(self._reached)
            self.threads.add(threading.get_ident())

    def leave(self) -> None:
        """From here on, nothing is raised in this thread, not even what was about to be."""
        with _here.changing:
            self.threads.discard(threading.get_ident())
        if self._reached is not None:
            _raise_in(threading.get_ident(), None)

    def end(self, limit: LimitKind) -> None:
        """Raises the error in all threads that share the limits."""
        with _here.changing:
            self._reached = limit
            for thread in self.threads:
                _raise_in(thread, _IN_THREADS[limit])

    def reached(self) -> LimitKind | None:
        """The limit of time that the work has reached, if any."""
        if self.processor_left_s <= 0:
            return "processor"
        return "wall" if self.wall_left_s <= 0 else None

    @property
    def free_share_bytes(self) -> float | None:
        """The part of the free memory that the work may take, if that is less than its allowance."""
        is_less = self._free_share_bytes < self._allowance.memory_bytes.of(self.text_bytes)
        return self._free_share_bytes if is_less else None

    @property
    def processor_left_s(self) -> float:
        most_s = self._processor_s + self._allowance.processor_s.of(self.text_bytes)
        if SIGNALS:
            most_s = min(most_s, _comparable(self._inherited[resource.RLIMIT_CPU]))
        return most_s - time.process_time()

    @property
    def wall_left_s(self) -> float:
        return self._began_s + self._allowance.wall_s.of(self.text_bytes) - time.monotonic()


class _Process:
    """State of this process: its enforcement of limits, its current work, and the thread that checks it."""

    def __init__(self) -> None:
        self.is_enforcing = False
        self.is_raising = False
        self.most_bytes = math.inf
        self.work: _Work | None = None
        self.changing = threading.RLock()  # a signal's handler may run in a thread that holds it
        self._is_working = threading.Event()
        self._watcher: threading.Thread | None = None

    def watch(self) -> None:
        """Checks the current work in a thread."""
        self._is_working.set()
        if self._watcher is None or not self._watcher.is_alive():  # a fork has none
            self._watcher = threading.Thread(target=self._keep_looking, name="torchtidy-limits", daemon=True)
            self._watcher.start()

    def _keep_looking(self) -> None:
        while self._is_working.wait():
            time.sleep(_LOOK_S)
            if (work := self.work) is None:
                self._is_working.clear()
                if self.work is not None:  # it began in between
                    self._is_working.set()
            elif (limit := work.reached()) is not None:
                _end_process(limit) if not self.is_raising else self._end(work, limit)

    def _end(self, work: _Work, limit: LimitKind) -> None:
        with self.changing:
            if self.work is not work:
                return
            work.end(limit)
            for number in (number for number, each in SIGNALS.items() if each == limit):
                signal.pthread_kill(threading.main_thread().ident or 0, number)


_here = _Process()


def _raise(_number: int, _frame: FrameType | None) -> None:
    """The handler of the signals of limits. One may be late, and come when its work has ended."""
    if (work := _here.work) is not None and (limit := work.reached()) is not None:
        work.end(limit)
        raise LimitReachedError(limit)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raises `error` in a thread as soon as it runs Python; None takes back what has not been raised yet."""
    import ctypes

    argument = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)


def _end_process(limit: LimitKind) -> None:
    faulthandler.dump_traceback()
    os._exit(next(code for _, each, code in LIMITS_OF_TIME if each == limit))


def _soft_limits() -> dict[int, int]:
    if not SIGNALS:
        return {}
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_DATA) if COUNTS_MEMORY else (resource.RLIMIT_CPU,)
    return {kind: resource.getrlimit(kind)[0] for kind in kinds}


def _set_soft_limit(kind: int, most: float) -> None:
    """Keeps the hard limit, since the soft one must rise again."""
    hard = resource.getrlimit(kind)[1]
    soft = min(_comparable(most), _comparable(hard))
    resource.setrlimit(kind, (resource.RLIM_INFINITY if soft > _LARGEST_LIMIT else math.ceil(soft), hard))


def _comparable(limit: float) -> float:
    """A limit as a number; infinity for no limit."""
    return math.inf if limit in {-1, resource.RLIM_INFINITY} else limit


def _set_alarm(after_s: float) -> None:
    if SIGNALS:
        signal.setitimer(signal.ITIMER_REAL, min(after_s, _LONGEST_WAIT_S), _AGAIN_S if after_s else 0)


def _stack_bytes() -> int:
    """Size of a new thread's stack in bytes."""
    soft = _comparable(resource.getrlimit(resource.RLIMIT_STACK)[0])
    return STACK_BYTES if math.isinf(soft) else int(soft)
