"""`tb-tidy doctor`: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

import click

from tb_tidy_plugin import __version__
from tb_tidy_plugin.trace.scanned import is_compiled

SHOWN = ("tensorboard", "numpy", "msgspec", "isal", "torch", "fsspec")
REBUILD = "pip install --force-reinstall --no-deps --no-cache-dir tb-tidy-plugin"


@click.command()
def doctor() -> None:
    """Say what is installed and what is missing.

    Nothing that is missing keeps the other commands from working: each line says what it would add.
    """
    for line in _lines():
        click.echo(line)


def _lines() -> Iterator[str]:
    yield f"tb-tidy {__version__}, Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    yield from (f"{name} {_version_of(name) or 'is not installed'}" for name in SHOWN)
    if is_compiled():
        yield "The compiled decoder is there."
    else:
        yield "The compiled decoder is missing: traces are read several times slower, and otherwise the same."
        yield f"  Install a C compiler (gcc, clang or MSVC), then run `{REBUILD}`."


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
