"""Freed memory in processes of our own, where the C library is glibc.

glibc returns a large array to the system as soon as it is freed, so that the system must clear the pages of the next
one: a sixth of the processor time that 100 MB of a trace take. In our processes it keeps such memory, and uses it
again. Each stage of an analysis takes arrays of other sizes than the one before, so that what is kept between them
would be a fifth of the peak of a large trace: large processes return it there. Other C libraries, and processes that
only import this package, are left as they are.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

if sys.platform != "win32":
    import resource

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h
MOST_FREE_BYTES = 1 << 30
"""Most free memory that stays at the end of the heap."""
MAPPED_BYTES = 32 << 20
"""An array of this size or more is returned as soon as it is freed; glibc accepts no larger limit."""
STATM = Path("/proc/self/statm")
LEAST_BYTES = 256 << 20
"""A smaller process keeps what it freed: to clear pages again takes longer than what happens between two stages."""
GROWTH_BYTES = 32 << 20
"""Growth between two of many small stages after which giving back is worth its few ms."""


class _Process:
    """This process."""

    trim: ClassVar[Callable[[int], object] | None] = None
    left_bytes: ClassVar[int] = 0


def spare_memory() -> None:
    """Keeps freed memory in this process until `give_back`; all its threads share one arena from now on."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):  # no ctypes, or another C library
        import ctypes

        library = ctypes.CDLL(None)
        _ = library.gnu_get_libc_version
        for option, value in ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, MAPPED_BYTES), (M_TRIM_THRESHOLD, MOST_FREE_BYTES)):
            library.mallopt(option, value)
        library.malloc_trim.argtypes = (ctypes.c_size_t,)
        _Process.trim = library.malloc_trim


def give_back(growth_bytes: int = 0) -> None:
    """Returns what was freed until now, in a large process that spares memory; to be called after a large stage.

    With `growth_bytes` only if the process has grown by as much since the last time.
    """
    least = max(LEAST_BYTES, growth_bytes and _Process.left_bytes + growth_bytes)
    if _Process.trim is not None and _peak_bytes() >= least and _held_bytes() >= least:
        _Process.trim(0)
        _Process.left_bytes = _held_bytes()


def _peak_bytes() -> int:
    """The most memory that this process has held; asked after each rule, at a tenth of the cost of `_held_bytes`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _held_bytes() -> int:
    """Resident memory of this process; 0 if the system does not say."""
    try:
        return int(STATM.read_text("ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
