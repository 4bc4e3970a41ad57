"""Graphs in the user's own Inductor cache, by their keys in a trace: texts, read and never executed.

The folder is the user's own, from the environment or Inductor's default. A trace chooses no path: it has keys, which
are letters and digits. Folders and files that others may have written are not read. Entries are pickles; their texts
are extracted from the stream, and nothing is unpickled.
"""

from __future__ import annotations

import getpass
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.system.private import check_folder, opened
from tb_tidy_plugin.trace.cache import State, state_of
from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    from tb_tidy_plugin.torchfacts.generated_code import SourceLine

SETTING = "TORCHINDUCTOR_CACHE_DIR"
_KEY = re.compile(r"[a-z0-9]{3,100}")
NOT_IN_NAMES = re.compile(r'[\\/:*?"<>|]')
_MAX_BYTES = 32 << 20
"""Most bytes of an entry: larger ones would take seconds to search."""

_CODE, _GRAPH, STACKS = "source_code", "inductor_post_grad_graph_str", "cache_linemap"


class _CachedGraph(msgspec.Struct, frozen=True):
    """A graph in the cache.

    Attributes:
        code: the Python code that calls its kernels.
        graph: Inductor's last graph, as it prints it.
        stacks: some stacks of its nodes, outermost frame first.
    """

    code: str
    graph: str
    stacks: Sequence[Sequence[SourceLine]]


def folder_of_cache() -> Path | None:
    """The folder of this user's Inductor cache; None without a user name or a folder for temporary files."""
    if given := os.environ.get(SETTING):
        return Path(given)
    try:
        return Path(tempfile.gettempdir()) / f"torchinductor_{NOT_IN_NAMES.sub('_', getpass.getuser())}"
    except (OSError, KeyError, ImportError):  # a full disk, or a container that does not know the user's number
        return None


def cached_graph(folder: Path, key: str) -> _CachedGraph | None:
    """The graph with this key; None if it is missing, ambiguous, or possibly another user's."""
    entries = _entries(folder, key)
    if entries is None:
        return None
    try:
        for each in (folder, folder / "fxgraph", entries.parent, entries):
            check_folder(each)
        (entry,) = entries.iterdir()
        with opened(entry) as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, TidyError, ValueError):
        return None
    return _read(content) if len(content) <= _MAX_BYTES else None


def graph_state(folder: Path | None, key: str) -> State:
    """A state that changes when the cache gets or loses a graph with this key; empty if it has none."""
    entries = None if folder is None else _entries(folder, key)
    return () if entries is None else state_of(entries)


def _entries(folder: Path, key: str) -> Path | None:
    return folder / "fxgraph" / key[1:3] / key if _KEY.fullmatch(key) else None


def _read(content: bytes) -> _CachedGraph | None:
    from tb_tidy_plugin.torchfacts.generated_code import stack_lines  # for few recordings

    texts: dict[str, str] = {}
    stacks: list[list[SourceLine]] = []
    try:
        for name, text in _named(content):
            if name in {_CODE, _GRAPH}:
                texts.setdefault(name, text)
            elif frames := stack_lines(text):
                stacks.append(frames)
    except (ValueError, IndexError, OverflowError):  # not written by pickle
        return None
    return _CachedGraph(texts[_CODE], texts[_GRAPH], stacks) if {_CODE, _GRAPH} <= texts.keys() else None


def _named(content: bytes) -> Iterator[tuple[str, str]]:
    """Each text, with the last relevant attribute before it."""
    import pickletools  # for few recordings

    name = ""
    for _, text, _ in pickletools.genops(content):
        if isinstance(text, str):
            if text.isidentifier():
                name = text
            elif name in {_CODE, _GRAPH, STACKS}:
                yield name, text
                name = name if name == STACKS else ""
