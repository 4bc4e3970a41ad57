"""The groups of options that all commands share which analyse traces."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

from tb_tidy_plugin.analysis.engines import Engine
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.configured import with_checks, with_limits
from tb_tidy_plugin.cli.engines import with_engine
from tb_tidy_plugin.cli.places import with_links
from tb_tidy_plugin.cli.sources import with_source_roots
from tb_tidy_plugin.configuration.checks import Checks
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.limits import Limits

R = TypeVar("R")


def with_job(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command` how traces are analysed, as `job`: by rules, engine, cache, links, source roots and limits."""

    @with_engine
    @with_links
    @with_source_roots
    @with_checks
    @wraps(command)
    def chosen(
        checks: Checks,
        engine: Engine,
        cache: Cache,
        source_roots: tuple[Path, ...],
        follow_links: bool,
        **others: object,
    ) -> R:
        job = Job(checks.rules, checks.ignores, source_roots, engine, cache, checks.limits, follow_links)
        return command(job=job, **others)

    return chosen


def with_job_without_rules(command: Callable[..., R]) -> Callable[..., R]:
    """The same for a command that checks no rule."""

    @with_engine
    @with_links
    @with_source_roots
    @with_limits
    @wraps(command)
    def chosen(
        engine: Engine,
        cache: Cache,
        source_roots: tuple[Path, ...],
        limits: Limits,
        follow_links: bool,
        **others: object,
    ) -> R:
        job = Job((), source_roots=source_roots, engine=engine, cache=cache, limits=limits, follow_links=follow_links)
        return command(job=job, **others)

    return chosen
