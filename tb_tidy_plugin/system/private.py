"""Folders and files that nobody but this user can have written.

On systems with owners, the opened file is checked, and not a name that may stand for something else a moment later.
Windows has no owners and permissions of this kind: there the check is only that a file is a file, and not a link.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tb_tidy_plugin.words.errors import TidyError

HAS_OWNERS = hasattr(os, "geteuid")
BELOW_FOLDERS = {os.open, os.stat} <= os.supports_dir_fd
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = getattr(os, "O_DIRECTORY", 0)
AS_IT_IS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags that follow no link at the end of a name, and do not wait for the writer of a pipe."""


class NotPrivateError(TidyError):
    """A folder or file that somebody else may have written."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read, if it and its folder are this user's alone. Waits for nothing, and follows no link.

    Raises:
        FileNotFoundError: it does not exist.
        NotPrivateError: somebody else may have written it, or it is not a file.
        OSError: it cannot be read.
    """
    with _folder(path.parent) as folder:
        name, below = (path, None) if folder is None else (path.name, folder)
        _check(path, os.stat(name, dir_fd=below, follow_symlinks=False))
        file = open(  # noqa: SIM115 - closed below
            name, "rb", opener=lambda name, flags: os.open(name, flags | AS_IT_IS, dir_fd=below)
        )
    with file:
        _check(path, os.fstat(file.fileno()))
        yield file


def check_folder(path: Path) -> None:
    """Checks that a folder is this user's alone.

    Raises:
        NotPrivateError: others may have written to it.
        OSError: it is not a folder, or does not exist.
    """
    with _folder(path):
        pass


def complaint_about_folder(folder: Path) -> NotPrivateError | None:
    """The error if others may have written to a folder; None if they cannot, or if it does not exist."""
    try:
        check_folder(folder)
    except NotPrivateError as problem:
        return problem
    except OSError:
        return None
    return None


def check_free(path: Path) -> None:
    """Checks that a file of this name may be written.

    Raises:
        NotPrivateError: another user's file has the name.
    """
    try:
        about = path.lstat()
    except OSError:
        return  # writing will report it
    if not is_own(about):
        raise NotPrivateError(f"`{path}` is not written: another user's file has the name.", "Delete it.")


def is_own(about: os.stat_result) -> bool:
    """True if something is this user's, or if there are no owners."""
    return not HAS_OWNERS or about.st_uid == os.geteuid()


@contextmanager
def _folder(path: Path) -> Iterator[int | None]:
    """The checked folder, for opening files in it; None if the system opens no folders."""
    _check_folder(path, os.lstat(path))
    if not BELOW_FOLDERS:
        yield None
        return
    folder = os.open(path, os.O_RDONLY | _FOLDER | AS_IT_IS)
    try:
        _check_folder(path, os.fstat(folder))
        yield folder
    finally:
        os.close(folder)


def _check_folder(path: Path, about: os.stat_result) -> None:
    if stat.S_ISLNK(about.st_mode):
        raise NotPrivateError(f"The folder `{path}` is not used: it is a link.", "Name the folder that it leads to.")
    if not stat.S_ISDIR(about.st_mode):
        raise NotADirectoryError(20, os.strerror(20), str(path))
    if not is_own(about):
        owner = f"it belongs to another user (number {about.st_uid})"
        advice = "Name one of your own; one that is not there yet is made for you alone."
        raise NotPrivateError(f"The folder `{path}` is not used: {owner}.", advice)
    if HAS_OWNERS and about.st_mode & OTHERS_WRITE:
        error = f"The folder `{path}` is not used: others may write there (mode {stat.S_IMODE(about.st_mode):o})."
        raise NotPrivateError(error, "Run `chmod go-w` on it, or name a new one below it, which is made for you alone.")


def _check(path: Path, about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise NotPrivateError(f"`{path}` is ignored: it is not a regular file.", "Delete it.")
    if not is_own(about):
        error = f"`{path}` is ignored: it belongs to another user (number {about.st_uid})."
        raise NotPrivateError(error, "Delete it.")
    if HAS_OWNERS and about.st_mode & OTHERS_WRITE:
        error = f"`{path}` is ignored: others may write it (mode {stat.S_IMODE(about.st_mode):o})."
        raise NotPrivateError(error, "Run `chmod go-w` on it, or delete it.")
