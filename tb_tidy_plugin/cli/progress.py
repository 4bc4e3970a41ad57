"""The progress bar of commands that read traces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.trace.files import TraceFile


@contextmanager
def progress_bar(job: Job) -> Iterator[Job]:
    """The job with a progress bar on stderr; unchanged if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield job
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def show(file: TraceFile, stage: str, fraction: float) -> None:
            bar.update(task, description=f"{stage} {file.path.name}", completed=fraction)

        yield replace(job, progress=show)
