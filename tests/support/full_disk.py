"""Disks that take no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def full_disk() -> Iterator[None]:
    """Writing into any file fails, here and in processes that are started: no file may be longer than nothing."""
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of files")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def filling_disk() -> Iterator[None]:
    """What Python writes breaks off after some bytes; what torch writes itself does not."""

    def fill(self: Path, content: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(content[:10])
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        yield
