"""Which files under a path are traces, and what run, worker and span each of them is.

The names are those of torch-tb-profiler, so that both tabs agree where both are installed: a run is a folder that
holds trace files, named by its path below the logdir.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tb_tidy_plugin.errors import NotFoundError

TRACE_NAME = re.compile(r"(?P<worker>.*?)(?:\.(?P<span>\d+))?\.pt\.trace\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True, order=True)
class TraceFile:
    """One trace file: one worker and one span of one run. `span` is empty where the name has none."""

    run: str
    worker: str
    span: str
    path: Path


def find_traces(path: Path) -> list[TraceFile]:
    """Trace files at `path`: the file itself, or all in the folder and below it, ordered by run, worker and span.

    Raises:
        NotFoundError: `path` does not exist, or no trace file is there.
    """
    if path.is_file():
        return [_named(path.parent.resolve().name, path)]
    if not path.is_dir():
        raise NotFoundError(f"There is no file or folder `{path}`.", "Check the path.")
    found = sorted(traces_below(path))
    if not found:
        raise NotFoundError(
            f"No trace (`*.pt.trace.json` or `*.pt.trace.json.gz`) is in `{path}` or below.",
            "Record with `on_trace_ready=torch.profiler.tensorboard_trace_handler(dir)` and give that folder.",
        )
    return found


def traces_below(logdir: Path, prefix: str = "") -> Iterator[TraceFile]:
    """Trace files in `logdir` and below. Links to folders are followed once; unreadable folders are passed over.

    Args:
        logdir: where to look.
        prefix: put before each run's name, for a logdir that has a name of its own.
    """
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, names in os.walk(logdir, followlinks=True):
        here = Path(folder).stat()
        if (here.st_dev, here.st_ino) in seen:
            subfolders.clear()
            continue
        seen.add((here.st_dev, here.st_ino))
        run = os.path.relpath(folder, logdir)
        run = logdir.resolve().name if run == "." else run.replace(os.sep, "/")
        for name in names:
            if TRACE_NAME.fullmatch(name):
                yield _named("/".join(filter(None, (prefix, run))), Path(folder, name))


def _named(run: str, path: Path) -> TraceFile:
    match = TRACE_NAME.fullmatch(path.name)
    if match is None:  # a file given by name may be called anything
        return TraceFile(run, path.name.removesuffix(".gz").removesuffix(".json"), "", path)
    return TraceFile(run, match["worker"], match["span"] or "", path)
