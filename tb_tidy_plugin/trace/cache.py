"""Cache of results on disk: one file for each entry, in one folder.

An entry's name is a hash of all that it depends on, so no entry is ever out of date. Anybody may delete the folder, or
anything in it, at any time; missing entries are computed again. Damaged entries, or those that may be somebody else's,
count as missing: folder and entry must belong to this user alone (`private.py`). Entries are typed data with a
checksum, never pickles, and nothing in them is executed: even somebody who could write them could not run code.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import re
import stat
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache as once
from pathlib import Path
from typing import TypeAlias

import msgspec
from platformdirs import user_cache_path

from tb_tidy_plugin.system.files import DRAFT, drafted
from tb_tidy_plugin.system.private import (
    NotPrivateError,
    check_folder,
    check_free,
    complaint_about_folder,
    is_own,
    opened,
)
from tb_tidy_plugin.trace.remote import AnyPath, RemotePath, identity_of
from tb_tidy_plugin.words.visible import log_called

try:
    from isal.isal_zlib import crc32  # ten times as fast
except ImportError:
    from zlib import crc32

log = log_called("tb_tidy_plugin")

USUAL_CACHE_BYTES = 2 << 30
"""Default limit for all entries together."""

_SUFFIX = ".tidy"
_NAME = re.compile(r"(?P<kind>[a-z]+)-[0-9a-f]{40}\.tidy")
_HEAD = struct.Struct("<16sQI36x")  # magic, bytes of the content, their checksum; padded to the alignment of arrays
MAGIC = b"tb-tidy cache 1\0"
ABANDONED_S = 3600.0  # an older draft was left by a process that was killed
PACKAGE = Path(__file__).resolve().parents[1]
_CODE = (".py", ".so", ".pyd")

EntryPiece: TypeAlias = bytes | memoryview
State: TypeAlias = tuple[str | int, ...]
"""State of a file, which changes with its content; empty if there is no file."""

UNREAD: State = ("unread",)
"""The state of a file that exists but could not be read this time: results without it are not stored."""


class Cache(msgspec.Struct, frozen=True):
    """Entries in `folder`; without one nothing is found or stored. May be used from any thread and process."""

    folder: Path | None = None
    most_bytes: int = USUAL_CACHE_BYTES

    def load(self, kind: str, key: str) -> memoryview | None:
        """The content of an entry, memory-mapped; it stays readable after deletion."""
        if self.folder is None:
            return None
        path = self.folder / _name(kind, key)
        try:
            with opened(path) as file:
                content = _checked(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
                with suppress(OSError):  # so that recently used entries are evicted last
                    os.utime(file.fileno() if os.utime in os.supports_fd else path)
        except FileNotFoundError:
            return None
        except NotPrivateError as problem:
            say_once(logging.WARNING, str(problem))
            return None
        except OSError as problem:
            say_once(logging.INFO, f"{path} is ignored: {problem}")
            return None
        except (ValueError, struct.error) as problem:
            say_once(logging.INFO, f"{path} is ignored: {problem}")
            with suppress(OSError):
                path.unlink()
            return None
        return content

    def usable(self) -> Cache:
        """This cache, or one that stores nothing if others may have written to the folder; logs that once."""
        problem = complaint_about_folder(self.folder) if self.folder else None
        if problem is None:
            return self
        say_once(logging.WARNING, str(problem))
        return NOWHERE

    def keep(self, kind: str, key: str, content: Iterable[EntryPiece]) -> None:
        """Adds an entry, and evicts the least recently used ones to make room; logs once if that fails."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_folder(self.folder)
            self._write(self.folder / _name(kind, key), content)
            self._make_room()
        except NotPrivateError as problem:
            say_once(logging.WARNING, str(problem))
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            say_once(logging.WARNING, f"Nothing is cached in {self.folder}: {reason}. Everything else works.")

    def _write(self, path: Path, content: Iterable[EntryPiece]) -> None:
        """Writes an entry, completely or not at all.

        Raises:
            NotPrivateError: another user's file has the name; it is left alone.
            OSError: it cannot be written.
        """
        size = checksum = 0
        check_free(path)
        with drafted(path) as draft, open(draft, "xb", opener=_for_this_user) as file:
            file.write(bytes(_HEAD.size))
            for piece in content:
                file.write(piece)
                size, checksum = size + memoryview(piece).nbytes, crc32(piece, checksum)
            file.seek(0)
            file.write(_HEAD.pack(MAGIC, size, checksum))

    def entries(self) -> list[CacheEntry]:
        """All entries, least recently used first.

        Raises:
            OSError: the folder cannot be listed.
        """
        return sorted(_entries(self.folder), key=lambda entry: entry.used_s) if self.folder else []

    def clear(self) -> int:
        """Deletes all entries that it can, and returns their bytes.

        Raises:
            OSError: the folder cannot be listed.
        """
        return sum(entry.size for entry in self.entries() if entry.delete())

    def _make_room(self) -> None:
        entries = self.entries()
        excess = sum(entry.size for entry in entries) - self.most_bytes
        for entry in entries:
            if excess <= 0:
                break
            excess -= entry.size if entry.delete() else 0
        for draft in self.folder.glob(f"{DRAFT}*") if self.folder else ():
            with suppress(OSError):
                about = draft.lstat()
                if is_own(about) and time.time() - about.st_mtime > ABANDONED_S:
                    draft.unlink()


NOWHERE = Cache()
"""Stores nothing."""


class CacheEntry(msgspec.Struct, frozen=True):
    """One entry: its kind, its bytes on disk, and the time of its last use, in s since 1970."""

    path: Path
    kind: str
    size: int
    used_s: float

    def delete(self) -> bool:
        """True if it is gone; another process may have deleted it."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            return False
        return True


def default_folder() -> Path:
    """This user's default folder for entries."""
    return user_cache_path("tb-tidy", appauthor=False) / "analyses"


def key_of(*parts: object) -> str:
    """A name for results that depend on all of `parts`."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:40]


def state_of(place: AnyPath) -> State:
    """The state of a file. Times of changes also change with permissions, which does no harm.

    Empty if the file is missing, or its store does not give enough information.
    """
    try:
        if isinstance(place, RemotePath):
            size, changed_ns, tag = identity_of(place.info())
            return (place.address, size, changed_ns, tag) if changed_ns or tag else ()
        about = place.stat()
    except OSError:
        return ()
    return (text_of(place.absolute()), about.st_size, about.st_mtime_ns, about.st_ctime_ns)


@once
def code_state(*folders: str) -> str:
    """A text that changes with this package's code, in some of its folders or in all of it.

    Raises:
        OSError: the code cannot be read.
    """
    roots = [PACKAGE / folder for folder in folders] or [PACKAGE]
    return key_of([each for root in roots for each in sorted(_code_in(root))])


def _code_in(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _code_in(Path(entry.path))
            elif entry.name.endswith(_CODE):
                about = entry.stat()
                yield entry.path, about.st_size, about.st_mtime_ns


def _entries(folder: Path) -> Iterator[CacheEntry]:
    """This user's files that are named like entries; other files are ignored."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for found in entries:
            match = _NAME.fullmatch(found.name)
            with suppress(OSError):
                about = found.stat(follow_symlinks=False)
                if match and stat.S_ISREG(about.st_mode) and is_own(about):
                    yield CacheEntry(Path(found.path), match["kind"], about.st_size, about.st_mtime)


def _checked(whole: memoryview) -> memoryview:
    """The content of an entry.

    Raises:
        ValueError: it is not an entry, or damaged.
        struct.error: it is too short to be one.
    """
    magic, size, checksum = _HEAD.unpack_from(whole)
    content = whole[_HEAD.size :]
    if magic != MAGIC:
        raise ValueError("it is not an entry")
    if len(content) != size or crc32(content) != checksum:
        raise ValueError("it is damaged")
    return content


def _for_this_user(name: str, flags: int) -> int:
    """Opens a new file that nobody else can read."""
    return os.open(name, flags, 0o600)


def _name(kind: str, key: str) -> str:
    return f"{kind}-{key}{_SUFFIX}"


def text_of(path: Path) -> str:
    """A path as part of a key: it may contain any bytes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@once
def say_once(level: int, text: str) -> None:
    """Logs a sentence once per process."""
    log.log(level, "%s", text)
