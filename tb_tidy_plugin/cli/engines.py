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
        help="Analyse traces in processes on this machine (`local`), or on a cluster, `dask://HOST:PORT` or "
        "`ray://HOST:PORT`. `dask://local` and `ray://local` start a cluster.",
    )
    @click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Analyse at most N traces at a time on this machine; the default follows from cores and memory.",
    )
    @click.option("--no-cache", is_flag=True, help="Read all traces again, and do not use this machine's cache.")
    @wraps(command)
    def engined(engine: str, jobs: int | None, no_cache: bool, **others: object) -> _R:
        cache = NOWHERE if no_cache else Cache(default_folder()).usable()
        return command(engine=engine_of(engine, jobs), cache=cache, **others)

    return engined
