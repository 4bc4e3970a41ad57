"""The n-th call of a kind fails: in this process, for files in some folders, in any thread.

The functions by which Python's own library reaches the system are replaced, so that what lies between (buffers,
`pathlib`, `gzip`, `tempfile`) behaves as it does on a failing disk. Native code is not reached; ours opens no files.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, cast

import pytest

ERRORS: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "open": (errno.EMFILE, errno.EACCES),
    "read": (errno.EIO,),
    "write": (errno.ENOSPC,),
    "close": (errno.EIO,),
    "fsync": (errno.EIO,),
    "rename": (errno.EACCES,),
    "mmap": (errno.ENOMEM,),
    "fork": (errno.EAGAIN,),
    "stat": (errno.EIO,),
    "list": (errno.EIO,),
    "unlink": (errno.EACCES,),
    "mkdir": (errno.ENOSPC,),
    "mark": (errno.EPERM,),  # permissions and times
})  # fmt: skip
"""How calls of each kind fail."""

RUNS_OUT = ("open", "write")
"""What may be had no more from any moment on: of the others only all calls fail, or one."""


@dataclass
class Fault:
    """The calls of one kind that fail: that with this `number`, counted from 1, and where it `lasts` all after it."""

    kind: str
    number: int
    error: int
    lasts: bool
    seen: int = 0

    @property
    def is_reached(self) -> bool:
        """Whether any call failed."""
        return self.seen >= self.number

    def __str__(self) -> str:
        return f"{self.kind} {self.number}{' and later' if self.lasts else ''}: {errno.errorcode[self.error]}"


def faults(kinds: Iterable[str] = ERRORS, *, all_errors: bool = False, every: int = 1) -> Iterator[Fault]:
    """Faults of these kinds, by their first error or by all in turns; a kind ends with the first not reached.

    Of the calls of a kind, the first of each `every` fails.
    """
    for kind in kinds:
        errors = ERRORS[kind] if all_errors else ERRORS[kind][:1]
        for error in errors:
            yield Fault(kind, 1, error, lasts=True)
        for number, error in zip(count(1, every), cycle(errors)):
            fault = Fault(kind, number, error, lasts=False)
            yield fault
            if not fault.is_reached:
                break
            if kind in RUNS_OUT and number > 1:
                yield Fault(kind, number, error, lasts=True)


@contextmanager
def injected(fault: Fault, *folders: Path) -> Iterator[None]:
    """Lets calls about what lies in `folders` fail as `fault` says."""
    system = _System(fault, tuple(os.path.join(os.path.realpath(folder), "") for folder in folders))
    with pytest.MonkeyPatch.context() as patch:
        system.take_the_place_of_the_real_one(patch)
        yield


class _System:
    """Calls to the system, of which some fail."""

    def __init__(self, fault: Fault, folders: tuple[str, ...]) -> None:
        self._fault = fault
        self._folders = folders
        self._files: dict[int, str] = {}
        self._lock = threading.Lock()

    def take_the_place_of_the_real_one(self, patch: pytest.MonkeyPatch) -> None:
        by_path = {
            "stat": ("stat", "lstat", "readlink"),
            "list": ("listdir",),
            "unlink": ("unlink", "remove", "rmdir"),
            "mkdir": ("mkdir",),
            "mark": ("chmod", "utime"),
            "rename": ("rename", "replace", "link"),
        }
        for kind, names in by_path.items():
            for name in names:
                patch.setattr(os, name, self._failing(kind, getattr(os, name)))
        for kind, names in {"stat": ("fstat",), "read": ("read",), "write": ("write",), "fsync": ("fsync",)}.items():
            for name in names:
                patch.setattr(os, name, self._failing(kind, getattr(os, name)))
        patch.setattr(os, "open", self._opening(os.open))
        patch.setattr(os, "scandir", self._listing(os.scandir))
        patch.setattr(mmap, "mmap", self._failing("mmap", mmap.mmap))
        patch.setattr(subprocess, "Popen", self._starting(subprocess.Popen))
        opened = self._opened(io.open)
        patch.setattr(io, "open", opened)
        patch.setattr("builtins.open", opened)

    def call(self, kind: str, about: object) -> None:
        """One call about a path or an open file.

        Raises:
            OSError: it fails.
        """
        path = self._path_of(about)
        if kind != self._fault.kind or path is None:
            return
        fault = self._fault
        with self._lock:
            fault.seen += 1
            fails = fault.seen == fault.number or (fault.lasts and fault.seen > fault.number)
        if fails:
            raise OSError(fault.error, os.strerror(fault.error), path)

    def _path_of(self, about: object) -> str | None:
        """The path in one of the folders, None for what is elsewhere."""
        if isinstance(about, int):
            return self._files.get(about)
        if not isinstance(about, str | bytes | os.PathLike):
            return None
        path = os.path.abspath(os.fsdecode(about))
        return path if path.startswith(self._folders) or os.path.join(path, "") in self._folders else None

    def _failing(self, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            self.call(kind, self._below(arguments[0] if arguments else None, named.get("dir_fd")))
            return real(*arguments, **named)

        return called

    def _opening(self, real: Callable[..., int]) -> Callable[..., int]:
        def opened(path: Any, *arguments: Any, **named: Any) -> int:
            whole = self._below(path, named.get("dir_fd"))
            self.call("open", whole)
            return self.known(real(path, *arguments, **named), whole)

        return opened

    def _below(self, path: object, folder: int | None) -> object:
        """A path that counts from an open folder, as one of its own."""
        above = None if folder is None else self._files.get(folder)
        return path if above is None else os.path.join(above, os.fspath(cast("str", path)))

    def known(self, number: int, path: object) -> int:
        """An open file by its number; the next file with the same number replaces it."""
        found = self._path_of(path)
        if found is None:
            self._files.pop(number, None)
        else:
            self._files[number] = found
        return number

    def _opened(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """`open` with the same layers above a file whose calls may fail."""

        def opened(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **named: Any) -> Any:
            if self._path_of(file) is None and named.get("opener") is None:
                return real(file, mode, buffering, *arguments, **named)
            raw = _File(self, file, mode, closefd=named.pop("closefd", True), opener=named.pop("opener", None))
            try:
                if buffering == 0:
                    return raw
                layer: Any = io.BufferedReader
                if "+" in mode:
                    layer = io.BufferedRandom
                elif "r" not in mode:
                    layer = io.BufferedWriter
                binary = layer(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
                return binary if "b" in mode else io.TextIOWrapper(binary, *arguments, **named)
            except BaseException:
                raw.close()
                raise

        return opened

    def _listing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def listed(path: Any = ".") -> Any:
            self.call("list", path)
            return _Listed(self, path, real(path))

        return listed

    def _starting(self, real: type[subprocess.Popen[Any]]) -> Callable[..., Any]:
        system = self

        class Popen(real):  # type: ignore[misc,valid-type]
            def _execute_child(self, *arguments: Any, **named: Any) -> None:
                system.call("fork", system._folders[0])
                super()._execute_child(*arguments, **named)

        return Popen


class _File(io.FileIO):
    """An open file. A write that fails has written half, and a close that fails has closed."""

    def __init__(self, system: _System, file: Any, mode: str, *, closefd: bool, opener: Any) -> None:
        self._system = system
        if not isinstance(file, int) and opener is None:
            system.call("open", file)
        super().__init__(file, mode.replace("b", "").replace("t", ""), closefd=closefd, opener=opener)
        self._about = (
            system.known(self.fileno(), file) if opener is None and not isinstance(file, int) else self.fileno()
        )

    def readinto(self, buffer: Any) -> int | None:
        self._system.call("read", self._about)
        return super().readinto(buffer)

    def read(self, size: int | None = -1) -> Any:
        self._system.call("read", self._about)
        return super().read(-1 if size is None else size)

    def readall(self) -> Any:
        self._system.call("read", self._about)
        return super().readall()

    def write(self, data: Any) -> Any:
        try:
            self._system.call("write", self._about)
        except OSError:
            view = memoryview(data).cast("B")
            super().write(view[: len(view) // 2])
            raise
        return super().write(data)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        self._system.call("close", self._about)


class _Listed(Iterator["_Entry"]):
    """A folder that is listed; the next entry, too, may not be had."""

    def __init__(self, system: _System, folder: object, entries: Any) -> None:
        self._system = system
        self._folder = folder
        self._entries = entries

    def __next__(self) -> _Entry:
        found = next(self._entries)
        self._system.call("list", self._folder)
        return _Entry(self._system, found)

    def __enter__(self) -> _Listed:  # noqa: PYI034 - Self is of Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._entries.close()


class _Entry(os.PathLike[str]):
    """One entry of a folder."""

    def __init__(self, system: _System, entry: os.DirEntry[str]) -> None:
        self._system = system
        self._entry = entry
        self.name, self.path = entry.name, entry.path

    def __fspath__(self) -> str:
        return os.fspath(self._entry)

    def inode(self) -> int:
        return self._entry.inode()

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._entry.is_dir(follow_symlinks=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._entry.is_file(follow_symlinks=follow_symlinks)

    def is_symlink(self) -> bool:
        return self._entry.is_symlink()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        self._system.call("stat", self._entry.path)
        return self._entry.stat(follow_symlinks=follow_symlinks)
