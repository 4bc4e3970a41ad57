"""Arguments and options that say where things are: traces, their sources and captures of graphs.

A trace is named by a path on this machine, by an address such as `s3://bucket/run`, or by `-` for stdin.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from tb_tidy_plugin.cli.output import STANDARD
from tb_tidy_plugin.sources.files import source_roots
from tb_tidy_plugin.trace.files import FOLLOW
from tb_tidy_plugin.trace.remote import AnyPath, path_or_url
from tb_tidy_plugin.words.errors import TidyError

if TYPE_CHECKING:
    ArgumentType = click.ParamType
else:  # `click.ParamType` is generic since 8.4 only

    class ArgumentType(click.ParamType):
        """The base of our own types of arguments, `ArgumentType[type of the value]`, with any click."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


_R = TypeVar("_R")


class PlaceParameter(ArgumentType[AnyPath]):
    """A path or an address, not accessed yet."""

    name = "path"

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> AnyPath:
        return _standard_input() if str(value) == STANDARD else path_or_url(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


def _standard_input() -> Path:
    """The trace on stdin, plain or gz, as a file that lasts as long as this process.

    Raises:
        TidyError: stdin is a terminal, or there is no room for its contents.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise TidyError("`-` is the trace on stdin, and nothing is piped into it.", "Name a file, or pipe one.")
    folder = Path(tempfile.mkdtemp(prefix="tb-tidy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin.pt.trace.json"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


PLACE = PlaceParameter()

with_paths = click.argument("path", type=PLACE, nargs=-1, required=True, metavar="PATH...")
"""Gives a command one or several places, as a tuple `path`; several are analysed together."""

with_links = click.option(FOLLOW, is_flag=True, help="Follow links that lead out of the folder.")
"""Gives a command the option to follow links out of its folders, as `follow_links`."""

with_captures = click.option(
    "--graph-capture",
    "graph_captures",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    callback=lambda _context, _option, paths: tuple(path.absolute() for path in paths),
    help="Recording of the capture of replayed graphs; by default looked for beside each trace; can be repeated.",
)
"""Gives a command the files that hold captures of graphs, as `graph_captures`."""


with_device = click.option(
    "--device",
    default="",
    metavar="NAME",
    help="Name of the GPU for recordings that do not name theirs, as in `nvidia-smi -L`: its limits are then known.",
)
"""Gives a command the name of the device of recordings without one, as `device`."""


def with_source_roots(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the folders in which sources may be read, as `source_roots`."""

    @click.option(
        "--source-root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        multiple=True,
        metavar="DIR",
        help="Also look here for the recorded sources, besides the recording's folder and the current one; can be "
        "repeated.",
    )
    @wraps(command)
    def rooted(source_root: tuple[Path, ...], **others: object) -> _R:
        try:
            folder = Path.cwd()
        except FileNotFoundError:  # the current folder was deleted
            folder = Path("/")
        return command(source_roots=(*(folder / root for root in source_root), *source_roots("", folder)), **others)

    return rooted
