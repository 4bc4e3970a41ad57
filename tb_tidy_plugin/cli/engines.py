"""The options that say where the traces of a run are analysed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import click

from tb_tidy_plugin.report.engines import engine_of

R = TypeVar("R")


def with_engine(command: Callable[..., R]) -> Callable[..., R]:
    """Gives `command` what `--engine` and `--jobs` say, as `engine`."""

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
        help="At most N traces at a time on this machine; otherwise as many as there are cores and memory for.",
    )
    @wraps(command)
    def engined(engine: str, jobs: int | None, **others: object) -> R:
        return command(engine=engine_of(engine, jobs), **others)

    return engined
