"""From a trace file to its table. Imports little, so that reading begins at once."""

from __future__ import annotations

from tb_tidy_plugin.allocator import give_back
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.trace.beside import read_with_side_files
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.remote import size_of


def table_in(file: TraceFile, job: Job) -> EventTable:
    """The table of one trace with the files beside it.

    Raises:
        TraceError: nothing in the file can be used.
    """
    size = max(size_of(file.path), 1)

    def progress(done: int) -> None:
        job.report(file, "reading", min(done / size, 1.0))

    table = read_with_side_files(file.path, progress, job.cache, job.limits, job.graph_captures)
    give_back()
    return table
