"""Recordings of the capture of graphs that a trace replays: files beside it, or files that the user names.

A file beside the trace is examined because it is there, never because the trace names it: its content shows whether it
holds a capture. Links that lead away are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from tb_tidy_plugin.system.side_files import GRAPH_SUFFIX
from tb_tidy_plugin.torchfacts.event_names import GRAPH_LAUNCH
from tb_tidy_plugin.trace.columns import EventTable, GraphCapture
from tb_tidy_plugin.trace.graph_files import MOST_FILES, files_beside
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits
from tb_tidy_plugin.trace.reader import read_blocks
from tb_tidy_plugin.trace.remote import AnyPath
from tb_tidy_plugin.words.errors import TraceError

_CAPTURE = b"StreamBeginCapture"
REPLAYED = re.compile(r"tidy:replay#([\w.-]{1,64})")
FILE = re.compile(rf"(?:.+\.)?graph-([\w.-]{{1,64}}){re.escape(GRAPH_SUFFIX)}")

MOST_LOOKED_AT = 512 << 20
"""Most bytes of a file on the disk that is examined."""


def with_graph_captures(
    table: EventTable, trace: AnyPath, named: Sequence[Path] = (), limits: Limits = USUAL_LIMITS
) -> EventTable:
    """`table` with the captures of the graphs that it replays: those in `named`, else those beside `trace`.

    Never raises for a file that cannot be used: `Metadata.notes` then says why.
    """
    if not replays_graphs(table):
        return table
    found: list[GraphCapture] = []
    for path in named or _beside(table, trace):
        try:
            found.append(GraphCapture(path.name, read_trace(path, limits=limits)))
        except TraceError as problem:
            table = table.noted(f"The graph capture `{path.name}` is not used. {problem.error} {problem.advice}")
    same_rank = [each for each in found if each.table.metadata.rank == table.metadata.rank]
    return replace(table, graphs=tuple(same_rank or found))


def replays_graphs(table: EventTable) -> bool:
    """True if graphs were launched."""
    launches = re.compile(GRAPH_LAUNCH)
    return any(launches.match(name) for name in table.names)


def _beside(table: EventTable, trace: AnyPath) -> list[Path]:
    """Files beside the trace that hold captures; empty if the trace holds its own."""
    if not isinstance(trace, Path) or any(_CAPTURE.decode() in name for name in table.names):
        return []
    replayed = {match[1] for name in table.names if (match := REPLAYED.fullmatch(name))}
    found = []
    for path in files_beside(trace):
        match = FILE.fullmatch(path.name)
        if match[1] in replayed if match else _holds_capture_at(path):
            found.append(path)
    return found[:MOST_FILES]


def _holds_capture_at(path: Path) -> bool:
    try:
        about = path.stat()
    except OSError:
        return False
    return 0 < about.st_size <= MOST_LOOKED_AT and _holds_capture(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=1 << 12)
def _holds_capture(path: Path, _size: int, _mtime_ns: int) -> bool:
    """True if the text of a file contains a capture; it is read block by block and not kept."""
    tail = b""
    try:
        for block in read_blocks(path):
            if _CAPTURE in tail + block[: len(_CAPTURE)] or _CAPTURE in block:
                return True
            tail = block[-len(_CAPTURE) :]
    except TraceError:
        return False
    return False
