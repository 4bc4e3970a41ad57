"""The option that names recordings of the capture of graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

_R = TypeVar("_R")


def with_graph_captures(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the files that hold captures of graphs, as `graph_captures`."""

    @click.option(
        "--graph-capture",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        metavar="FILE",
        help=(
            "Recording of the capture of the graphs that the traces replay; by default TorchTidy looks beside each "
            "trace. Can be repeated."
        ),
    )
    @wraps(command)
    def named(graph_capture: tuple[Path, ...], **others: object) -> _R:
        return command(graph_captures=tuple(path.absolute() for path in graph_capture), **others)

    return named
