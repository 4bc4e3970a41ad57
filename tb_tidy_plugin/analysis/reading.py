"""From a trace file to its events. Imports little, so that reading begins at once."""

from __future__ import annotations

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.system.allocator import give_back
from tb_tidy_plugin.trace.beside import ReadTrace, read_before_keeping
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.trace.remote import size_of


def trace_in(file: TraceFile, job: Job) -> ReadTrace:
    """One trace with the files beside it.

    Raises:
        TraceError: nothing in the file can be used.
    """
    size = max(size_of(file.path), 1)

    def progress(done: int) -> None:
        job.report(file, "reading", min(done / size, 1.0))

    read = read_before_keeping(file.path, progress, job.cache, job.limits, job.graph_captures)
    give_back()
    return read
