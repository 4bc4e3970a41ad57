"""Memory that was freed goes back to the system, in processes of our own where the C library is glibc.

glibc keeps what is freed for the next time, in one place for each thread. That is a fifth of the peak, since each stage
of an analysis takes arrays of other sizes than the one before. Other C libraries do as they always do, and so does a
process that only imports this package.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

M_ARENA_MAX = -8  # malloc.h
STATM = Path("/proc/self/statm")
LEAST_BYTES = 96 << 20
"""A process that holds less keeps what it freed, which takes no time."""


class _Process:
    """This process."""

    trim: ClassVar[Callable[[int], object] | None] = None


def spare_memory() -> None:
    """From now on `give_back` does so in this process, and all its threads take memory from one place."""
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError, AttributeError):  # no ctypes, or another C library
        import ctypes

        library = ctypes.CDLL(None)
        _ = library.gnu_get_libc_version
        library.mallopt(M_ARENA_MAX, 1)
        library.malloc_trim.argtypes = (ctypes.c_size_t,)
        _Process.trim = library.malloc_trim


def give_back() -> None:
    """Gives back what was freed until now, in a large process that spares memory; to be called where much was."""
    if _Process.trim is not None and _held_bytes() >= LEAST_BYTES:
        _Process.trim(0)


def _held_bytes() -> int:
    """Memory of this process; 0 where the system does not say."""
    try:
        return int(STATM.read_text("ascii").split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
