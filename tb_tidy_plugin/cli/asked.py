"""Options shared by the commands for programs and assistants."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.ask.folder import Folder
from tb_tidy_plugin.trace.remote import AnyPath, on_this_machine
from tb_tidy_plugin.words.errors import NotFoundError

_R = TypeVar("_R")


def with_apply(command: Callable[..., _R]) -> Callable[..., _R]:
    """Gives `command` the option to write fixes and run programs, as `allow_apply`."""
    return click.option("--allow-apply", is_flag=True, help="Let `apply_fix` write files and `verify` run programs.")(
        command
    )


def folder_at(place: AnyPath, job: Job, *, allow_apply: bool) -> Folder:
    """The folder, or the trace file, to ask about.

    Raises:
        NotFoundError: it does not exist, or is on a store.
    """
    path = on_this_machine(place)
    if path is None:
        raise NotFoundError(f"`{place}` is on a store.", "Give a folder on this machine.")
    if not path.exists():
        raise NotFoundError(f"`{path}` does not exist.", "Check the path.")
    return Folder(Path(os.path.abspath(path)), job, allow_apply)  # noqa: PTH100 - a link keeps its name
