"""Full disks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk(room: int = 0) -> Iterator[None]:
    """Writing to any file fails from `room` bytes on, here and in processes that are started."""
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def filling_disk() -> Iterator[None]:
    """Python's writes stop after some bytes; torch's own writes do not."""

    def fill(self: Path, content: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(content[:10])
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        yield
