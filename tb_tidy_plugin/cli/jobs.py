"""The groups of options shared by all commands that analyse traces."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from tb_tidy_plugin.analysis.engines import Engine
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.configured import with_checks, with_limits
from tb_tidy_plugin.cli.engines import with_engine
from tb_tidy_plugin.cli.graphs import with_graph_captures
from tb_tidy_plugin.cli.places import with_links
from tb_tidy_plugin.cli.sources import with_source_roots
from tb_tidy_plugin.trace.cache import Cache

_R = TypeVar("_R")


def with_job(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the job for its options, as `job`."""
    return with_checks(_completed(command))


def with_job_without_rules(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives a command without rules the job for its options, as `job`."""
    return with_limits(_completed(command))


def _completed(command: Callable[..., _R]) -> Callable[..., _R]:
    """Adds the options for places of files, and for where and how they are analysed, to a job."""

    @with_engine
    @with_graph_captures
    @with_links
    @with_source_roots
    @wraps(command)
    def completed(
        job: Job,
        engine: Engine,
        cache: Cache,
        source_roots: tuple[Path, ...],
        follow_links: bool,
        graph_captures: tuple[Path, ...],
        **others: object,
    ) -> _R:
        whole = replace(
            job, engine=engine, cache=cache, source_roots=source_roots, follow_links=follow_links,
            graph_captures=graph_captures,
        )  # fmt: skip
        return command(job=whole, **others)

    return completed
