"""The option that names the folders of the recorded sources."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

from tb_tidy_plugin.sources.files import source_roots

_R = TypeVar("_R")


def with_source_roots(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the folders in which sources may be read, as `source_roots`."""

    @click.option(
        "--source-root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        multiple=True,
        metavar="DIR",
        help=(
            "Also look here for the sources that the recording names, besides its own folder and the current one; can "
            "be repeated."
        ),
    )
    @wraps(command)
    def rooted(source_root: tuple[Path, ...], **others: object) -> _R:
        try:
            folder = Path.cwd()
        except FileNotFoundError:  # the current folder was deleted
            folder = Path("/")
        return command(source_roots=(*(folder / root for root in source_root), *source_roots("", folder)), **others)

    return rooted
