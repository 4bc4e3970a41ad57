"""Which files under a path are traces, and what run, worker and span each of them is.

The names are those of torch-tb-profiler, so that both tabs agree where both are installed: a run is a folder that
holds trace files, named by its path below the logdir.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tb_tidy_plugin.errors import NotFoundError
from tb_tidy_plugin.trace.remote import Place, RemotePath

TRACE_NAME = re.compile(r"(?P<worker>.*?)(?:\.(?P<span>\d+))?\.pt\.trace\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True, order=True)
class TraceFile:
    """One trace file: one worker and one span of one run. `span` is empty where the name has none."""

    run: str
    worker: str
    span: str
    path: Place


def find_traces(path: Place) -> list[TraceFile]:
    """Trace files at `path`: the file itself, or all in the folder and below it, ordered by run, worker and span.

    Raises:
        NotFoundError: `path` does not exist, or no trace file is there.
    """
    if isinstance(path, Path) and path.is_file():
        return [_named(path.parent.resolve().name, path)]
    if isinstance(path, Path) and not path.is_dir():
        raise NotFoundError(f"There is no file or folder `{path}`.", "Check the path.")
    found = sorted(traces_below(path) if isinstance(path, Path) else _remote_traces(path))
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


def traces_among(folder: RemotePath, files: Iterable[RemotePath], prefix: str = "") -> Iterator[TraceFile]:
    """Those of `files`, all in `folder` or below, that are traces; `prefix` as above."""
    start = len(folder.address.rstrip("/")) + 1
    for file in files:
        if TRACE_NAME.fullmatch(file.name):
            run = file.address[start:].rpartition("/")[0] or folder.name
            yield _named("/".join(filter(None, (prefix, run))), file)


def _remote_traces(path: RemotePath) -> Iterator[TraceFile]:
    """As `find_traces`, on a store.

    Raises:
        NotFoundError: nothing is there, or the store does not let it be seen.
    """
    try:
        if path.info()["type"] == "file":
            return iter([_named(RemotePath(path.address.rpartition("/")[0]).name, path)])
        return traces_among(path, path.files_below())
    except FileNotFoundError:
        raise NotFoundError(f"There is no file or folder `{path}`.", "Check the address.") from None
    except PermissionError as problem:
        error = f"`{path}` may not be read: {problem.strerror}."
        raise NotFoundError(error, "Set the credentials that the store's package looks for.") from None
    except OSError as problem:
        raise NotFoundError(f"`{path}` cannot be reached: {problem.strerror}.", "Check address and network.") from None


def _named(run: str, path: Place) -> TraceFile:
    match = TRACE_NAME.fullmatch(path.name)
    if match is None:  # a file given by name may be called anything
        return TraceFile(run, path.name.removesuffix(".gz").removesuffix(".json"), "", path)
    return TraceFile(run, match["worker"], match["span"] or "", path)
