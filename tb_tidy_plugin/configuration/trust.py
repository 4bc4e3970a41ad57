"""Check that nobody else could have written a file, before a file that the user did not name runs code.

The rule is that of sshd's `StrictModes`: the file, and each folder and link on the way to it, belongs to this user or
to root, and nobody else can write to it. Folders further up count, since whoever can write to one of them can put
another folder in place of the one below. In a folder with the sticky bit, such as `/tmp`, nobody can, so folders of
this user in it are safe. Files and links in it are not: others may add hard links to files of this user.

Folders above the home folder do not count for files in it: whoever can replace a home folder needs no configuration.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

ROOT_USER = 0
MOST_LINKS = 40  # as Linux follows
ACCESS_LIST = "system.posix_acl_access"

Identity = tuple[int, int]
"""Device and inode, which are the same by whatever name a folder is reached."""


class Content(msgspec.Struct, frozen=True):
    """The content of a file, and the reason if somebody else could have written it or put it there.

    Attributes:
        doubt: why somebody else could have, as a clause; empty if nobody could.
    """

    data: bytes
    doubt: str


def read(path: Path, most_bytes: int = -1) -> Content:
    """The content of a regular file, or its first `most_bytes`.

    The file is opened once: its content is that of the file whose owner is checked, whatever its path names later.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        ValueError: its name is invalid.
    """
    with open(path, "rb", opener=_opened) as file:
        opened = os.fstat(file.fileno())
        if not stat.S_ISREG(opened.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        return Content(file.read(most_bytes), _doubt(path, opened))


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # does not wait for the writer of a pipe


def identities(folders: Iterable[Path]) -> set[Identity]:
    """The identities of those folders that exist."""
    found = set()
    for folder in folders:
        with suppress(OSError):
            found.add(_identity(folder.stat()))
    return found


def folder_among(path: Path, folders: Collection[Identity]) -> Path | None:
    """The first of `folders` on the way to `path`, with all links followed; None without any.

    Raises:
        OSError: the way cannot be followed.
    """
    ways = (path, Path(os.path.realpath(path)))  # the second for Windows, where a junction looks like a folder
    passed = {parent for way in ways for step, _ in _way(way, None) for parent in step.parents}
    return next((parent for parent in sorted(passed) if _identity(parent.stat()) in folders), None)


def home_folder() -> Path | None:
    """The real path of the user's home folder; None if unknown."""
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:
        return None


def _doubt(path: Path, opened: os.stat_result) -> str:
    home = home_folder()
    if sys.platform == "win32":  # `st_uid` is always 0 there; a home folder is its user's alone
        is_at_home = home is not None and home in Path(os.path.realpath(path)).parents
        return "" if is_at_home else f"`{path}` is outside your home folder, and owners are not checked on Windows"
    last = opened
    shared = set[Path]()
    for step, last in _way(path, home):
        if last.st_uid not in {ROOT_USER, os.geteuid()}:
            return f"`{step}` belongs to another user"
        if step.parent in shared and not stat.S_ISDIR(last.st_mode):
            return f"other users can write to `{step.parent}`"
        if not stat.S_ISLNK(last.st_mode) and _others_can_write(step, last):
            if not stat.S_ISDIR(last.st_mode) or not last.st_mode & stat.S_ISVTX:
                return f"other users can write to `{step}`"
            shared.add(step)
    return "" if os.path.samestat(last, opened) else f"`{path}` was replaced while it was read"


def _way(path: Path, home: Path | None) -> Iterator[tuple[Path, os.stat_result]]:
    """Each folder and link on the way to `path`, then the file itself, from the root of the disk or from `home`.

    Starts over after each link. Whoever cannot write to the steps so far cannot change the next one either, so what
    holds for all of them continues to hold.

    Raises:
        OSError: something on the way is missing, or there are too many links.
    """
    here, ahead = _start(path.absolute(), home)
    yield here, os.lstat(here)
    links = 0
    while ahead:
        part = ahead.pop()
        here = here.parent if part == ".." else here / part
        about = os.lstat(here)
        yield here, about
        if stat.S_ISLNK(about.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            here, target = _start(here.parent / here.readlink(), home)
            yield here, os.lstat(here)
            ahead += target


def _start(path: Path, home: Path | None) -> tuple[Path, list[str]]:
    """The folder to start at, and the names that lead from there to `path`, the last one first."""
    start = home if home is not None and home in path.parents else Path(path.anchor)
    return start, [*reversed(path.relative_to(start).parts)]


def _others_can_write(path: Path, about: os.stat_result) -> bool:
    if about.st_mode & stat.S_IWOTH:
        return True
    if not about.st_mode & stat.S_IWGRP:
        return False
    return _has_access_list(path) or not _is_own_group(about.st_gid)


def _is_own_group(group_id: int) -> bool:
    """True if a group is this user's private one, which Ubuntu and others allow to write all new files of the user.

    Root has none: a group of its name may be that of several administrators.
    """
    import grp  # not on Windows
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(group_id)
    except KeyError:
        return False
    return (
        user.pw_uid != ROOT_USER
        and (group.gr_gid, group.gr_name) == (user.pw_gid, user.pw_name)
        and set(group.gr_mem) <= {user.pw_name}
        and all(other.pw_uid == user.pw_uid for other in pwd.getpwall() if other.pw_gid == group_id)
    )


def _has_access_list(path: Path) -> bool:
    """True if the mode's group bits apply to more users than those of the group."""
    if sys.platform != "linux":
        return False
    with suppress(OSError):  # the file system has no such lists
        return ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
    return False


def _identity(about: os.stat_result) -> Identity:
    return about.st_dev, about.st_ino
