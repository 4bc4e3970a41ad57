"""A trace with all files beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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


class ReadTrace:
    """A trace that was read, and its columns, as long as they must still be stored in the cache."""

    def __init__(self, table: EventTable, keep: Callable[[], None] | None) -> None:
        self._table: EventTable | None = table
        self._keep = keep

    def taken(self) -> EventTable:
        """The table; it can be taken once, so that its memory is freed early."""
        table, self._table = self._table, None
        assert table is not None
        return table

    def keep(self) -> None:
        """Stores the columns, unless that is done or not wanted; the table must not be changed."""
        if self._keep is not None:
            self._keep()
            self._keep = None


def read_with_side_files(
    path: AnyPath,
    progress: ReadProgress | None = None,
    cache: Cache = NOWHERE,
    limits: Limits = USUAL_LIMITS,
    graph_captures: Sequence[Path] = (),
) -> EventTable:
    """The trace `path` with the files beside it: of a capture, an out-of-tree device, graphs, the allocator, the model.

    The columns of large traces are stored in `cache`. `graph_captures` are files that the user names; without them,
    those beside the trace are used.

    Raises:
        TraceError: nothing in the trace can be used; notes say which side files cannot be used.
    """
    read = read_before_keeping(path, progress, cache, limits, graph_captures)
    read.keep()
    return read.taken()


def read_before_keeping(
    path: AnyPath,
    progress: ReadProgress | None = None,
    cache: Cache = NOWHERE,
    limits: Limits = USUAL_LIMITS,
    graph_captures: Sequence[Path] = (),
) -> ReadTrace:
    """As `read_with_side_files`, with columns that are not yet stored.

    Raises:
        TraceError: as there.
    """
    key = columns_key(path) if cache.folder else None
    columns, keep = None if key is None else load_columns(cache, key), None
    if columns is None:
        columns = with_capture(with_device_events(read_trace(path, progress, limits), path), path)
        if key is not None and not columns.metadata.unread:
            keep = partial(_keep_unless_changed, path, cache, key, columns)
    table = with_model_config(with_memory_snapshot(columns, path), path)
    return ReadTrace(with_graph_captures(table, path, graph_captures, limits), keep)


def _keep_unless_changed(path: AnyPath, cache: Cache, key: str, columns: EventTable) -> None:
    if key == columns_key(path):
        keep_columns(cache, key, columns)
