"""`tb-tidy cache`: the cache that lets traces open faster the next time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from tb_tidy_plugin.report.model import SCHEMA_VERSION
from tb_tidy_plugin.system.private import complaint_about_folder
from tb_tidy_plugin.trace.cache import USUAL_CACHE_BYTES, Cache, default_folder
from tb_tidy_plugin.words.errors import TidyError
from tb_tidy_plugin.words.units import Bytes

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


class CacheKind(msgspec.Struct, frozen=True):
    """Entries of one kind in the JSON of `tb-tidy cache info`."""

    entries: int
    bytes: int


class CacheInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`tb-tidy cache info --format json`; `problem` says why the cache is not used, if so."""

    schema: int = SCHEMA_VERSION
    folder: str
    bytes: int
    most_bytes: int
    problem: str | None
    kinds: dict[str, CacheKind]


@cache.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@IN_FOLDER
def info(folder: Path, form: str) -> None:
    """Show the cache's folder, size and contents.

    JSON is `{"schema", "folder", "bytes", "most_bytes", "problem", "kinds": {"…": {"entries", "bytes"}}}`.
    """
    with _told(folder):
        entries = Cache(folder).entries()
    sizes: dict[str, list[int]] = {}
    for entry in entries:
        sizes.setdefault(entry.kind, []).append(entry.size)
    problem = complaint_about_folder(folder)
    found = CacheInfo(
        folder=str(folder),
        bytes=sum(map(sum, sizes.values())),
        most_bytes=USUAL_CACHE_BYTES,
        problem=None if problem is None else str(problem),
        kinds={kind: CacheKind(len(of_kind), sum(of_kind)) for kind, of_kind in sorted(sizes.items())},
    )
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    click.echo(f"{folder}: {Bytes(found.bytes)} of at most {Bytes(found.most_bytes)}")
    if found.problem:
        click.echo(f"  {found.problem}")
    for kind, each in found.kinds.items():
        click.echo(f"  {kind}: {each.entries}, {Bytes(each.bytes)}")


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
