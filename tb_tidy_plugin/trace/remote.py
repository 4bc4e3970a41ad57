"""Files on stores that fsspec reaches, such as `s3://bucket/run`: the operations of a path that reading a trace needs.

Each store's package raises its own exceptions. Here they become `OSError`, so that readers need not know where a file
lies; a missing package becomes a `TraceError` with the command that installs it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import msgspec

from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.words.errors import TidyError, TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from fsspec import AbstractFileSystem

    Info: TypeAlias = Mapping[str, object]

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://")
PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
}
"""Packages to install for a scheme, besides fsspec; fsspec's own message names the others."""

NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES})
"""Error numbers of a disk for a file that does not exist, or not for this user."""

_BLOCK_BYTES = 8 << 20  # one request: its latency (50 ms) is then small beside its transfer (80 ms at 100 MB/s)
BLOCKS_KEPT = 3  # the one being read, the one being fetched, and one for a read across their border
ETAGS = ("ETag", "etag", "content_md5", "md5Hash", "generation", "version_id")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")


class RemotePath(msgspec.Struct, frozen=True, order=True):
    """A file or folder by its address, without a trailing slash. All methods raise `OSError`, as `Path`'s do."""

    address: str

    def __str__(self) -> str:
        return self.address

    def __fspath__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part; the bucket if there is no other."""
        return self.address.rstrip("/").rpartition("/")[2]

    def with_name(self, name: str) -> RemotePath:
        """Its sibling of that name."""
        return RemotePath(f"{self.address.rpartition('/')[0]}/{name}")

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.address.rstrip('/')}/{name}")

    def is_file(self) -> bool:
        """`is_file` below; also False if the store forbids looking, as some do for missing files."""
        try:
            return self.info()["type"] == "file"
        except OSError as problem:
            return not isinstance(problem, FileNotFoundError | PermissionError)

    def info(self) -> Info:
        """The store's data on it: `type`, `size` and more, whose names differ between stores."""
        with _told(self.address):
            fs, path = _opened(self.address)
            info: Info = fs.info(path)
            return info

    def open(self, mode: str = "rb") -> RemoteFile:
        """Opens it for reading from start to end; the next block is fetched while one is used."""
        with _told(self.address):
            fs, path = _opened(self.address)
            ahead = {"cache_type": "background", "cache_options": {"maxblocks": BLOCKS_KEPT}}
            return RemoteFile(self.address, fs.open(path, mode, block_size=_BLOCK_BYTES, **ahead))

    def read_bytes(self) -> bytes:
        """The content of a small file."""
        with _told(self.address):
            fs, path = _opened(self.address)
            return bytes(fs.cat_file(path))

    def write_bytes(self, content: bytes) -> None:
        """Writes it completely or not at all, as object stores do."""
        with _told(self.address):
            fs, path = _opened(self.address)
            fs.pipe_file(path, content)

    def heads(self, files: Sequence[RemotePath], size: int) -> list[bytes | None]:
        """The first bytes of each of these files below it, up to `size`, requested together; None if one fails."""
        with _told(self.address):
            fs, _ = _opened(self.address)
            paths = [_opened(file.address)[1] for file in files]
            found = fs.cat_ranges(paths, 0, size, on_error="return")
        return [each if isinstance(each, bytes) else None for each in found]

    def files_below(self) -> dict[RemotePath, Info]:
        """All files in this folder and below it, as they are now, with the store's data on each."""
        with _told(self.address):
            fs, path = _opened(self.address)
            fs.invalidate_cache()
            found: Mapping[str, Info] = fs.find(path, detail=True)
        start = len(path.rstrip("/"))
        return {self / name[start:].strip("/"): info for name, info in found.items()}


class RemoteFile(AbstractContextManager["RemoteFile", None]):
    """A stream of bytes whose reads raise `OSError`, whatever the store's package raises."""

    def __init__(self, address: str, stream: IO[bytes]) -> None:
        self._address = address
        self._stream = stream

    def read(self, size: int) -> bytes:
        """The next `size` bytes, or fewer at the end of the file."""
        with _told(self._address):
            return self._stream.read(size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()


AnyPath: TypeAlias = Path | RemotePath
"""Place of a file or folder: on this machine, or on a store."""


def path_or_url(path: str | os.PathLike[str]) -> AnyPath:
    """An address such as `s3://…`, or a path on this machine."""
    name = os.fspath(path)
    return RemotePath(name.rstrip("/")) if ADDRESS.match(name) else Path(name)


def on_this_machine(place: AnyPath) -> Path | None:
    """The path of a place on this machine, also for an address such as `file:///runs`; None for one on a store."""
    if isinstance(place, Path):
        return place
    scheme, _, path = place.address.rpartition("::")[2].rpartition("://")
    return Path(path) if scheme in {"", "file", "local"} else None


def absolute(place: AnyPath) -> AnyPath:
    """The same place, for a process in another folder."""
    return place.absolute() if isinstance(place, Path) else place


def is_file(place: AnyPath) -> bool:
    """True if it exists and is not a folder, or if that is unknown: reading it then gives the reason."""
    if isinstance(place, RemotePath):
        return place.is_file()
    try:
        return stat.S_ISREG(place.stat().st_mode)
    except OSError as problem:
        return problem.errno not in NOT_THERE
    except ValueError:  # a null byte in the name
        return False


def can_be_opened(address: str) -> bool:
    """True if the packages for this kind of address are installed; connects to nothing."""
    try:
        with _told(address):
            _opened(address)
    except (OSError, TraceError):
        return False
    return True


def write_small(place: AnyPath, content: bytes, mode: int | None = None) -> None:
    """Writes a file, completely or not at all; `mode` are its permissions on a disk.

    Raises:
        OSError: it cannot be written; an existing file is unchanged.
    """
    if isinstance(place, RemotePath):
        place.write_bytes(content)
    else:
        write_whole(place, content, mode)


def size_of(place: AnyPath) -> int:
    """Size of a file in bytes; 0 if unknown."""
    try:
        return place.stat().st_size if isinstance(place, Path) else _number(place.info().get("size"))
    except OSError:
        return 0


def changed_at(place: AnyPath) -> float:
    """Time of a file's last change, in s since 1970; 0 if a store does not give it.

    Raises:
        OSError: it does not exist.
    """
    return place.stat().st_mtime if isinstance(place, Path) else identity_of(place.info())[1] / 1e9


def identity_of(info: Info) -> tuple[int, int, str]:
    """Size, time of the last change in ns since 1970 and entity tag, which change with the file's content."""
    when = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    tag = next((str(info[key]) for key in ETAGS if info.get(key) is not None), "")
    return _number(info.get("size")), _changed_ns(when), tag


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _changed_ns(when: object) -> int:
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when.replace("Z", "+00:00"))
        except ValueError:
            return 0
    if isinstance(when, datetime):
        when = when.replace(tzinfo=when.tzinfo or timezone.utc).timestamp()
    return round(when * 1e9) if isinstance(when, (int, float)) else 0


def _opened(address: str) -> tuple[AbstractFileSystem, str]:
    """The store and the path in it."""
    if find_spec("fsspec") is None:
        raise _missing(address)
    from fsspec.core import url_to_fs

    try:
        fs, path = url_to_fs(address)
    except ValueError as problem:
        raise TraceError(f"`{address}` is not an address for fsspec: {problem}.", "Check the address.") from None
    return fs, str(path)


def _missing(address: str, said: str = "") -> TraceError:
    scheme = address.partition("://")[0].lower()
    packages = " ".join(["fsspec", *filter(None, [PACKAGES.get(scheme)])])
    known = scheme in PACKAGES or not said
    return TraceError(
        f"`{scheme}://` cannot be read without {packages.replace(' ', ' and ')}.",
        f"Run `pip install {packages}` and start again." if known else said,
    )


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Converts exceptions of a store's package to `OSError`."""
    try:
        yield
    except (TidyError, MemoryError):
        raise
    except (FileNotFoundError, PermissionError) as problem:  # without the store's own words, which give no reason
        number = errno.ENOENT if isinstance(problem, FileNotFoundError) else errno.EACCES
        raise OSError(number, os.strerror(number), address) from problem
    except ImportError as problem:
        raise _missing(address, str(problem)) from None
    except Exception as problem:
        name = type(problem).__name__
        if "Credential" in name:
            raise PermissionError(errno.EACCES, f"there are no credentials ({problem})", address) from problem
        words = str(problem).strip().rstrip(".")
        raise OSError(errno.EIO, f"{name}: {words}" if words else name, address) from problem
