"""The groups of options shared by all commands that analyse traces."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click
from msgspec.structs import replace

from tb_tidy_plugin.analysis.engines import engine_of
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.configured import with_checks, with_limits
from tb_tidy_plugin.cli.places import with_captures, with_device, with_links, with_source_roots
from tb_tidy_plugin.configuration.devices import checked_device
from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder

_R = TypeVar("_R")


def with_job(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the job for its options, as `job`."""
    return with_checks(_completed(_with_named_device(command)))


def with_job_for_benchmarks(command: Callable[..., _R]) -> Callable[..., _R]:
    """The same for a command whose `--device` is the one that it uses."""
    return with_checks(_completed(command))


def with_job_without_rules(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives a command without rules the job for its options, as `job`."""
    return with_limits(_completed(_with_named_device(command)))


def _with_named_device(command: Callable[..., _R]) -> Callable[..., _R]:
    """Adds `--device`, for recordings that do not name theirs, to a job."""

    @with_device
    @wraps(command)
    def named(job: Job, device: str, **options: object) -> _R:
        known = checked_device(device, job.devices, "`--device`")
        return command(job=replace(job, device=known or job.device), **options)

    return named


def _completed(command: Callable[..., _R]) -> Callable[..., _R]:
    """Adds the options for places of files, and for where and how they are analysed, to a job."""

    @click.option(
        "--engine",
        default="local",
        show_default=True,
        metavar="ENGINE",
        help="Analyse traces in processes on this machine (`local`), or on a cluster, `dask://HOST:PORT` or "
        "`ray://HOST:PORT`. `dask://local` and `ray://local` start a cluster.",
    )
    @click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Analyse at most N traces at a time on this machine; by default as many as cores and memory allow.",
    )
    @click.option("--no-cache", is_flag=True, help="Read all traces again, and do not use this machine's cache.")
    @with_captures
    @with_links
    @with_source_roots
    @wraps(command)
    def completed(job: Job, engine: str, jobs: int | None, no_cache: bool, **options: object) -> _R:
        of_job = {name: options.pop(name) for name in ("source_roots", "follow_links", "graph_captures")}
        cache = NOWHERE if no_cache else Cache(default_folder()).usable()
        of_job |= {"engine": engine_of(engine, jobs), "cache": cache}
        return command(job=replace(job, **of_job), **options)

    return completed
