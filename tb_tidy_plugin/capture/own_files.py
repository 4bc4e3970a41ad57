"""Frames of the user's own files, and the text of those files."""

from __future__ import annotations

import hashlib
import io
import linecache
import os
import re
import site
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path

from tb_tidy_plugin.torchfacts.inductor import is_generated

_FRAME = re.compile(r"(?P<file>[^<(][^(]*)\(\d+\): ", re.DOTALL)

MAX_SOURCE_BYTES = 512_000
MAX_TOTAL_BYTES = 8_000_000


class OwnFiles:
    """Files of the user's own, by the names that the profiler gives them.

    The profiler cuts the longest entry of `sys.path` off a path, as in https://github.com/pytorch/pytorch/blob/v2.13.0/
    torch/profiler/python_tracer.py, so a name is looked up below each of these.
    """

    def __init__(self) -> None:
        self._bases = tuple(dict.fromkeys(os.path.abspath(entry) for entry in (*sys.path, "")))
        self._libraries = tuple(_libraries())
        self._imported = frozenset(_imported())
        self._path = cache(self._find)
        self._of_frame = cache(self._named_in)

    def named_in(self, frame: str) -> str | None:
        """The file in the name of a frame (`train.py(12): step`), None if that is not the user's own."""
        return self._of_frame(frame)

    def path_of(self, name: str) -> str | None:
        """The path of a file of the user's own, None for other files."""
        return self._path(name)

    def name_of(self, path: str) -> str:
        """The name that the profiler gives a path."""
        return next((path.removeprefix(prefix) for prefix in self._prefixes if path.startswith(prefix)), path)

    @cached_property
    def _prefixes(self) -> list[str]:
        import torch

        entries: list[str] = [*site.getsitepackages(), *sys.path, site.getuserbase(), site.getusersitepackages()]
        folders = {os.path.abspath(entry) for entry in (*entries, str(Path(torch.__file__).parents[1]))}
        return [folder + os.sep for folder in sorted(folders, reverse=True)]

    def _named_in(self, frame: str) -> str | None:
        match = _FRAME.match(frame)
        return match["file"] if match and self._path(match["file"]) else None

    def _find(self, name: str) -> str | None:
        paths = [os.path.join(base, name) for base in self._bases]  # an absolute name stays as it is
        there = [path for path in dict.fromkeys(paths) if os.path.isfile(path) or path in linecache.cache]
        path = next((path for path in there if path in self._imported), next(iter(there), None))
        is_own = path is not None and path.endswith(".py") and not (self._is_library(path) or is_generated(path))
        return path if is_own else None

    def _is_library(self, path: str) -> bool:
        spellings = (path, os.path.realpath(path))
        return any(spelling.startswith(library) for spelling in spellings for library in self._libraries)


def _libraries() -> Iterator[str]:
    """Folders of libraries, with a separator at the end."""
    import torch

    installed = sysconfig.get_paths()
    folders = [installed[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    folders += [str(Path(torch.__file__).parent), str(Path(__file__).parents[1])]
    for folder in folders:
        yield os.path.abspath(folder) + os.sep  # the spelling matters, not only where it leads
        yield os.path.realpath(folder) + os.sep


def _imported() -> Iterator[str]:
    """Files of the modules that the job has imported, without triggering lazy imports."""
    for module in list(sys.modules.values()):
        try:
            file = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:
            continue
        if isinstance(file, str):
            yield os.path.abspath(file)


def own_sources(names: Iterable[str], own: OwnFiles, unchanged_since: float) -> Iterator[Mapping[str, str]]:
    """Name, sha256 and text of each file, as far as they fit.

    Args:
        names: as the profiler gives them.
        own: knows the paths of these files.
        unchanged_since: Unix time; a file that was written later is not the one that runs, and is left out.
    """
    left = MAX_TOTAL_BYTES
    for name in sorted(names):
        content = _content(own.path_of(name) or "", unchanged_since)
        if content is not None and len(content) <= left:
            left -= len(content)
            yield {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "text": _text(content)}


def _content(path: str, unchanged_since: float) -> bytes | None:
    if path in linecache.cache and not os.path.isfile(path):  # a cell of a notebook
        content = "".join(linecache.getlines(path)).encode()
        return content if len(content) <= MAX_SOURCE_BYTES else None
    try:
        with open(path, "rb") as stream:  # the name may be anything
            about = os.fstat(stream.fileno())
            if about.st_size > MAX_SOURCE_BYTES or about.st_mtime > unchanged_since:
                return None
            return stream.read(MAX_SOURCE_BYTES)
    except (OSError, ValueError):
        return None


def _text(content: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return content.decode("utf-8", "replace")
