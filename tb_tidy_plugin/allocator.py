"""Memory that was freed goes back to the system, in processes of our own where the C library is glibc.

glibc keeps what is freed for the next time, in one place for each thread. That is a fifth of the peak, since each stage
of an analysis takes arrays of other sizes than the one before. Other C libraries do as they always do, and so does a
process that only imports this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

M_ARENA_MAX = -8  # malloc.h


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
    """Gives back what was freed until now, in a process that spares memory; to be called where much was."""
    if _Process.trim is not None:
        _Process.trim(0)
