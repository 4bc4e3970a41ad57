"""A trace with all that lies beside it."""

from __future__ import annotations

from tb_tidy_plugin.trace.cache import NOWHERE, Cache
from tb_tidy_plugin.trace.cached_columns import columns_key, keep_columns, load_columns
from tb_tidy_plugin.trace.capture_file import with_capture
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.external import with_device_events
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.trace.limits import USUAL, Limits
from tb_tidy_plugin.trace.reader import Progress
from tb_tidy_plugin.trace.remote import Place


def read_with_side_files(
    path: Place, progress: Progress | None = None, cache: Cache = NOWHERE, limits: Limits = USUAL
) -> EventTable:
    """The trace `path` with its side files: of the capture, of an out-of-tree device. Large ones are kept in `cache`.

    Raises:
        TraceError: nothing in the trace can be used; side files that cannot be used are noted.
    """
    key = columns_key(path) if cache.folder else None
    if key is not None and (kept := load_columns(cache, key)) is not None:
        return kept
    table = with_capture(with_device_events(read_trace(path, progress, limits), path), path)
    if key is not None and not table.metadata.unread and key == columns_key(path):  # nothing changed meanwhile
        keep_columns(cache, key, table)
    return table
