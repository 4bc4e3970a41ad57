"""Stores that fsspec reaches: one in this process's memory, and ones that fail as networks do."""

from __future__ import annotations

from pathlib import Path

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class Unreachable(MemoryFileSystem):  # type: ignore[misc]
    """Nobody answers; the error is that of a package that does not use `OSError`."""

    protocol = "unreachable"

    def info(self, *_arguments: object, **_others: object) -> dict[str, object]:
        raise LookupError("no address for host store.example")

    find = info


class Guarded(MemoryFileSystem):  # type: ignore[misc]
    """Nothing may be read without credentials."""

    protocol = "guarded"

    def info(self, *_arguments: object, **_others: object) -> dict[str, object]:
        raise PermissionError("Forbidden")

    find = info
    pipe_file = info


class Stream:
    """Bytes that stop coming."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def read(self, size: int) -> bytes:
        """Returns some bytes, then raises the error of a broken connection."""
        if not self._left:
            raise EOFError("connection reset by peer")
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def close(self) -> None:
        """Nothing to close."""


class Breaking(MemoryFileSystem):  # type: ignore[misc]
    """Half of each file arrives; the files are those of `memory://`."""

    protocol = "breaking"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("breaking://")))

    def open(self, path: str, *_arguments: object, **_others: object) -> Stream:
        content = self.cat_file(path)
        return Stream(content[: len(content) // 2])


for store in (Unreachable, Guarded, Breaking):
    fsspec.register_implementation(store.protocol, store, clobber=True)


def uploaded(folder: Path, address: str) -> None:
    """Copies `folder` to a store; a store in this process's memory is emptied first."""
    fs, path = fsspec.core.url_to_fs(address)
    if isinstance(fs, MemoryFileSystem):
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            fs.pipe_file(f"{path.rstrip('/')}/{file.relative_to(folder).as_posix()}", file.read_bytes())
