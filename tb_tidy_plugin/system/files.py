"""Files written completely or not at all: a reader may read, and a process may be killed, at any time."""

from __future__ import annotations

import errno
import os
import stat
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


class NotReplaceableError(Exception):
    """A file that cannot be replaced without a loss; the text says why, after its name."""


def replace_whole(path: Path, content: bytes) -> None:
    """Replaces the content of the user's own file, completely or not at all.

    The file keeps its owner, group, permissions, access control list and extended attributes; the latter two on Linux
    only.

    Raises:
        NotReplaceableError: it is read-only or has several names, or one of these cannot be kept; it is unchanged.
        OSError: it cannot be written; it is unchanged.
    """
    about = path.lstat()
    if not about.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK):  # root may write everything
        raise NotReplaceableError("is read-only")
    if about.st_nlink > 1:
        raise NotReplaceableError(f"has {about.st_nlink} hard links, and a new file would have one")
    with drafted(path) as draft:
        draft.touch(0o600)  # private while it is written
        draft.write_bytes(content)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        created = draft.stat()
        if (created.st_uid, created.st_gid) != (about.st_uid, about.st_gid):
            try:
                os.chown(draft, about.st_uid, about.st_gid)
            except OSError:
                raise NotReplaceableError("belongs to another user or group, and a new file would not") from None
        draft.chmod(stat.S_IMODE(about.st_mode))
        try:
            _keep_attributes(path, draft)
        except OSError:
            raise NotReplaceableError("has extended attributes that a new file cannot get") from None


def _keep_attributes(path: Path, draft: Path) -> None:
    """Gives a draft the extended attributes of a file, which include its access control list.

    Raises:
        OSError: the system does not allow it.
    """
    if not hasattr(os, "listxattr"):
        return
    try:
        kept = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    except OSError as problem:
        if problem.errno == errno.ENOTSUP:  # this file system has none
            return
        raise
    given = {name: os.getxattr(draft, name) for name in os.listxattr(draft)}
    for name in given.keys() - kept.keys():
        os.removexattr(draft, name)
    for name, value in kept.items():
        if given.get(name) != value:
            os.setxattr(draft, name, value)
