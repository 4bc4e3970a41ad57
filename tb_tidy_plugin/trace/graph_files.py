"""Files beside a trace that may hold captures of the graphs it replays, and their state; reads none of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tb_tidy_plugin.system.side_files import GRAPH_SUFFIX
from tb_tidy_plugin.trace.cache import State
from tb_tidy_plugin.trace.names import is_trace_name, may_be_trace
from tb_tidy_plugin.trace.remote import AnyPath

LOOKED_AT = "<captures of graphs>"
"""Represents the files beside a trace among the sources that an answer depends on; no source has this name."""

CAPTURE_FOLDERS = ("capture_traces", "graph_capture_profile")
"""Folders beside the traces in which vLLM and SGLang store recordings of captures, if they are told to."""

_RUN_FOLDER = re.compile(r"\d{9,11}(?:\.\d+)?")
"""Name of the folder that `sglang.profiler` makes for a run, its Unix time, in the folder for all runs."""

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
    """Regular files that may be traces or captures, by name, without the trace itself.

    They lie in the folder of `trace`, or in the `CAPTURE_FOLDERS` in it. For a run of SGLang, captures may also lie in
    the folder of all its runs, where they count only if they are our own or in such a folder.
    """
    folder = trace.parent
    beside = [path for path in _listed(folder, _may_hold) if path.name != trace.name]
    yield from (path for path in beside if _is_ours(path.name))
    places = [folder]
    if _RUN_FOLDER.fullmatch(folder.name):
        yield from _listed(folder.parent, _is_ours)
        places.append(folder.parent)
    stored = [place / name for place in places for name in CAPTURE_FOLDERS if not (place / name).is_symlink()]
    others = [*beside, *(path for each in stored for path in _listed(each, _may_hold))]
    yield from [path for path in others if not _is_ours(path.name)][:MOST_FILES]


def _is_ours(name: str) -> bool:
    return name.endswith(GRAPH_SUFFIX)


def _may_hold(name: str) -> bool:
    return _is_ours(name) or is_trace_name(name) or may_be_trace(name)


def _listed(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Regular files in `folder` by name; empty if it cannot be listed."""
    try:
        with os.scandir(folder) as listed:
            return sorted(
                folder / each.name for each in listed if wanted(each.name) and each.is_file(follow_symlinks=False)
            )
    except OSError:
        return []
