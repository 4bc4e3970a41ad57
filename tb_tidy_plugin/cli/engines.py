"""The options for where the traces of a run are analysed and results are cached."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click

from tb_tidy_plugin.analysis.engines import engine_of
from tb_tidy_plugin.trace.cache import NOWHERE, Cache, default_folder

_R = TypeVar("_R")


def with_engine(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` what `--engine` and `--jobs` say, as `engine`, and where answers are kept, as `cache`."""

    @click.option(
        "--engine",
        default="local",
        show_default=True,
        metavar="ENGINE",
        help="Where traces are analysed: processes on this machine, or a cluster, `dask://HOST:PORT` or "
        "`ray://HOST:PORT`. `dask://local` and `ray://local` start one.",
    )
    @click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Analyse at most N traces at a time on this machine; by default as many as cores and memory allow.",
    )
    @click.option("--no-cache", is_flag=True, help="Read all traces again, and cache nothing on this machine.")
    @wraps(command)
    def engined(engine: str, jobs: int | None, no_cache: bool, **others: object) -> _R:
        cache = NOWHERE if no_cache else Cache(default_folder()).usable()
        return command(engine=engine_of(engine, jobs), cache=cache, **others)

    return engined
