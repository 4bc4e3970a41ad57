"""A trace with all files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.cached_columns import columns_key, keep_columns, load_columns
from tb_tidy_plugin.trace.capture_file import with_capture
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.external import with_device_events
from tb_tidy_plugin.trace.graphs import with_graph_captures
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.limits import USUAL_LIMITS, Limits
from tb_tidy_plugin.trace.memory_snapshot import with_memory_snapshot
from tb_tidy_plugin.trace.model_config import with_model_config
from tb_tidy_plugin.trace.reader import ReadProgress
from tb_tidy_plugin.trace.remote import AnyPath


def read_with_side_files(
    path: AnyPath,
    progress: ReadProgress | None = None,
    cache: Cache = NOWHERE,
    limits: Limits = USUAL_LIMITS,
    graph_captures: Sequence[Path] = (),
) -> EventTable:
    """The trace `path` with the files beside it: of a capture, an out-of-tree device, graphs, the allocator, the model.

    The columns of large traces are stored in `cache`. `graph_captures` are files that the user names; without them,
    those
    beside the trace are used.

    Raises:
        TraceError: nothing in the trace can be used; notes say which side files cannot be used.
    """
    table = with_model_config(with_memory_snapshot(_columns(path, progress, cache, limits), path), path)
    return with_graph_captures(table, path, graph_captures, limits)


def _columns(path: AnyPath, progress: ReadProgress | None, cache: Cache, limits: Limits) -> EventTable:
    key = columns_key(path) if cache.folder else None
    if key is not None and (kept := load_columns(cache, key)) is not None:
        return kept
    table = with_capture(with_device_events(read_trace(path, progress, limits), path), path)
    if key is not None and not table.metadata.unread and key == columns_key(path):  # nothing changed meanwhile
        keep_columns(cache, key, table)
    return table
