"""Files beside a trace that may hold captures of the graphs it replays, and their state; reads none of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tb_tidy_plugin.side_files import GRAPH_SUFFIX
from tb_tidy_plugin.trace.cache import State
from tb_tidy_plugin.trace.names import is_trace_name, may_be_trace
from tb_tidy_plugin.trace.remote import AnyPath

LOOKED_AT = "<captures of graphs>"
"""Represents the files beside a trace among the sources that an answer depends on; no source has this name."""

MOST_FILES = 256
"""Most files beside a trace that are examined, and most captures that are read."""


def captures_state(trace: AnyPath) -> State:
    """A state that changes when a file beside the trace that may hold a capture appears, disappears or changes."""
    if not isinstance(trace, Path):
        return ()
    found: list[str | int] = []
    for path in files_beside(trace):
        try:
            about = path.stat()
        except OSError:
            continue
        found += [os.fsencode(path.name).hex(), about.st_size, about.st_mtime_ns]
    return tuple(found)


def files_beside(trace: Path) -> Iterator[Path]:
    """Regular files in the folder of `trace` that may be traces or captures, by name, without the trace itself."""
    try:
        with os.scandir(trace.parent) as listed:
            names = sorted(
                entry.name
                for entry in listed
                if entry.name != trace.name
                and (entry.name.endswith(GRAPH_SUFFIX) or is_trace_name(entry.name) or may_be_trace(entry.name))
                and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return
    captures = [name for name in names if name.endswith(GRAPH_SUFFIX)]
    others = [name for name in names if not name.endswith(GRAPH_SUFFIX)]
    yield from (trace.with_name(name) for name in (*captures, *others[:MOST_FILES]))
