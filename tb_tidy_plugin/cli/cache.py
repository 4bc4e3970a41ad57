"""`tb-tidy cache`: the cache that lets traces open faster the next time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tb_tidy_plugin.errors import TidyError
from tb_tidy_plugin.private import complaint_about_folder
from tb_tidy_plugin.trace.cache import USUAL_CACHE_BYTES, Cache, default_folder
from tb_tidy_plugin.units import Bytes

IN_FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=default_folder,
    metavar="FOLDER",
    help="The folder given to TensorBoard with `--torchtidy_cache`, if any.",
)


@click.group(short_help="Show or delete the cache of analysed traces.")
def cache() -> None:
    """Show or delete the cache of analysed traces on this machine.

    You can delete it at any time: traces are analysed again when needed.
    """


@cache.command()
@IN_FOLDER
def info(folder: Path) -> None:
    """Show the cache's folder, size and contents."""
    with _told(folder):
        entries = Cache(folder).entries()
    size = sum(entry.size for entry in entries)
    click.echo(f"{folder}: {Bytes(size)} of at most {Bytes(USUAL_CACHE_BYTES)}")
    if problem := complaint_about_folder(folder):
        click.echo(f"  {problem}")
    for kind, count in sorted(Counter(entry.kind for entry in entries).items()):
        size = sum(entry.size for entry in entries if entry.kind == kind)
        click.echo(f"  {kind}: {count}, {Bytes(size)}")


@cache.command()
@IN_FOLDER
def clear(folder: Path) -> None:
    """Delete all entries."""
    with _told(folder):
        click.echo(f"{Bytes(Cache(folder).clear())} deleted in {folder}.")
        left = Cache(folder).entries()
    if left:
        advice = "Check its permissions, or try again: another process may have added entries."
        raise TidyError(f"Entries in `{folder}` that could not be deleted: {len(left)}.", advice)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Raises TidyError if the folder cannot be listed."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise TidyError(
            f"`{folder}` cannot be listed: {reason}.", "Check its permissions, or name another one."
        ) from None
