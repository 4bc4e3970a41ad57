"""Files written completely or not at all: a reader may read, and a process may be killed, at any time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DRAFT = ".tidy-draft-"
"""Prefix of the names of unfinished files."""

FOR_THE_TEAM = 0o644
"""Permissions of files beside a trace."""


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A file beside `path` to write into; it replaces `path` when the block ends, and is deleted if it fails.

    Its name is new, so that threads and processes may write the same `path` at once; the last one stays.

    Raises:
        OSError: nothing can be written there, or renamed; existing content is unchanged.
    """
    draft = path.with_name(f"{DRAFT}{os.getpid()}-{os.urandom(6).hex()}")
    try:
        yield draft
        draft.replace(path)
    finally:
        with suppress(OSError):  # renamed, or never created
            draft.unlink()


def write_whole(path: Path, content: bytes, mode: int | None = None) -> Path:
    """Writes `content` into `path`, completely or not at all; `mode` are its permissions, by default the usual ones.

    Raises:
        OSError: it cannot be written; existing content is unchanged.
    """
    with drafted(path) as draft:
        if mode is not None:
            draft.touch(0o600)  # private while it is written
        draft.write_bytes(content)
        with draft.open("rb+") as file:  # else a crash of the system may leave the name without the content
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
    return path
