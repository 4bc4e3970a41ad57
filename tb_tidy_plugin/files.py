"""Files written whole or not at all: a reader may look, and a process may be killed, at any time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DRAFT = ".tidy-draft-"
"""What names of files begin with that are being written."""

FOR_THE_TEAM = 0o644
"""Permissions of what lies beside a trace."""


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A file beside `path` to write into; it takes the place of `path` when the block ends, and is gone if it fails.

    Its name is new, so that threads and processes may write the same `path` at once; the last one stays.

    Raises:
        OSError: nothing can be written there, or renamed; what was there before is as it was.
    """
    draft = path.with_name(f"{DRAFT}{os.getpid()}-{os.urandom(6).hex()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):  # renamed, or never made
            draft.unlink()


def write_whole(path: Path, content: bytes, mode: int | None = None) -> Path:
    """Writes `content` into `path`, all of it or nothing; `mode` are its permissions, by default the usual ones.

    Raises:
        OSError: it cannot be written; what was there before is as it was.
    """
    with drafted(path) as draft:
        if mode is not None:
            draft.touch(0o600)  # nobody else's while it is written
        draft.write_bytes(content)
        with draft.open("rb+") as file:  # else a crash of the system may leave the name without the content
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
    return path
