"""The trace handler: torch's own trace, and beside it the data that the trace cannot hold.

The format of the side file is on the page `docs/capture.md`.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tb_tidy_plugin.capture.cached_graphs import cached_graphs
from tb_tidy_plugin.capture.compiled import compiled_code, files_in
from tb_tidy_plugin.capture.guarded import unless_it_fails
from tb_tidy_plugin.capture.live_tree import Walk, walk
from tb_tidy_plugin.capture.losses import loss_said, say_not_exported
from tb_tidy_plugin.capture.own_files import OwnFiles, own_sources
from tb_tidy_plugin.capture.settings import settings
from tb_tidy_plugin.system.files import write_whole
from tb_tidy_plugin.system.side_files import CAPTURE_SUFFIX, CAPTURE_VERSION

if TYPE_CHECKING:
    import torch

    Profiler: TypeAlias = torch.profiler.profile

LOOK_SHARE = 0.1  # most time for checking torch's trace, as a part of its export
LEAST_LOOK_S = 0.5  # least limit of that time
FAST = 3  # level of gzip: a fifth of the time of the default, a tenth more bytes

_Document: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """Optional data to capture: texts of sources, and the identity of tensors."""

    sources: bool = True
    tensors: bool = False


def tidy_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    *,
    sources: bool = True,
    tensors: bool = False,
) -> Callable[[Profiler], None]:
    """A drop-in for `torch.profiler.tensorboard_trace_handler`: the same trace, and `<trace>.tidy.json.gz` beside it.

    Failures of the side file are logged and never raised; the trace behaves as torch's, and its loss is logged.

    Args:
        dir_name, worker_name, use_gzip: as in torch.
        sources: True to store the text of the user's own files that are in the recording.
        tensors: True to store which tensors are the same; needs `record_shapes` and `profile_memory`.
    """
    import torch

    export = torch.profiler.tensorboard_trace_handler(dir_name, worker_name, use_gzip)
    return capturing(export, CaptureOptions(sources=sources, tensors=tensors))


def capturing(
    export: Callable[[Profiler], None],
    wanted: CaptureOptions,
    around: Callable[[], Mapping[str, object]] = dict,
    written: Callable[[Path], object] = lambda _: None,
) -> Callable[[Profiler], None]:
    """A handler that calls `export`, checks its result, and writes the side file of each trace.

    Raises only what `export` raises. All losses are logged.

    Args:
        export: torch's handler.
        wanted: what to capture.
        around: fields of the side file on the steps so far, recorded or not.
        written: called with each side file.
    """
    made_at = time.time()

    def handle(prof: Profiler) -> None:
        noted = _ExportNoted(prof)
        began = time.monotonic()
        try:
            export(noted)  # type: ignore[arg-type] # torch's handler calls its export, and nothing else
        except Exception as error:
            unless_it_fails("why there is no trace", partial(say_not_exported, noted.paths, error))
            raise
        budget_s = max(LEAST_LOOK_S, LOOK_SHARE * (time.monotonic() - began))
        for path in noted.paths:
            look = partial(loss_said, path, budget_s)
            loss = unless_it_fails("whether the trace is whole", look, "since it cannot be read")
            if loss is None or not loss.is_total:
                then = "the trace itself is unaffected" if loss is None else "beside a trace that breaks off"
                unless_it_fails("the side file", partial(capture, prof, path), then)

    def capture(prof: Profiler, path: str) -> None:
        written(write_document(path, {**_document(prof, made_at, wanted), **around()}))

    return handle


class _ExportNoted:
    """A profiler for torch's handler that records the path of the trace, whose name only the handler knows."""

    def __init__(self, prof: Profiler) -> None:
        self._prof = prof
        self.paths: list[str] = []

    def export_chrome_trace(self, path: str, *arguments: Any, **named: Any) -> object:
        self.paths.append(path)
        return self._prof.export_chrome_trace(path, *arguments, **named)

    def __getattr__(self, name: str) -> object:
        return getattr(self._prof, name)


def write_document(trace: str | os.PathLike[str], document: _Document) -> Path:
    """Writes the side file of `trace`."""
    text = json.dumps({"version": CAPTURE_VERSION, **document}, separators=(",", ":"), allow_nan=False)
    path = Path(f"{os.fspath(trace)}{CAPTURE_SUFFIX}")
    return write_whole(path, gzip.compress(text.encode("ascii"), FAST, mtime=0))


def _document(prof: Profiler, made_at: float, wanted: CaptureOptions) -> _Document:
    document: _Document = {"settings": unless_it_fails("the settings", settings)}
    found = unless_it_fails("the calling lines", lambda: _walked(prof, tensors=wanted.tensors))
    if found is None:
        return document
    own, walked = found
    document |= {"complete": walked.complete, "calls": _columns(("start_ns", "name", "line"), walked.calls)}
    if wanted.tensors:
        document["tensors"] = _columns(("start_ns", "name", "tensors", "storages"), walked.tensors)
    cached = unless_it_fails("cached graphs", lambda: list(cached_graphs(own))) if wanted.sources else ()
    compiled = unless_it_fails("compiled code", lambda: compiled_code(own.name_of, cached or ()))
    if compiled:
        document["compiled"] = compiled
    if wanted.sources:
        names = walked.files | (files_in(compiled) if compiled else set())
        document["sources"] = unless_it_fails("the sources", lambda: list(own_sources(names, own, made_at)))
    return document


def _walked(prof: Profiler, *, tensors: bool) -> tuple[OwnFiles, Walk] | None:
    results = prof.profiler.kineto_results if prof.profiler is not None else None
    if results is None:
        return None
    own = OwnFiles()
    return own, walk(results.experimental_event_tree(), own, tensors=tensors)


def _columns(
    names: Sequence[str], rows: Sequence[tuple[int, int, Any] | tuple[int, int, Any, Any]]
) -> dict[str, list[object]]:
    """Rows as columns; starts as distances from one row to the next, the first from 1970."""
    starts = [row[0] for row in rows]
    columns: dict[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return columns | {names[0]: [after - before for before, after in pairwise([0, *starts])]}
