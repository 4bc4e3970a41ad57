"""Tables and text on the terminal, or as lines where there is none."""

from __future__ import annotations

import io
import sys
from typing import Literal

import click
from rich.console import Console, RenderableType

WIDTH_WITHOUT_TERMINAL = 100


def say(*parts: RenderableType, no_wrap: bool = False) -> None:
    """Prints `parts`, each below the other. With `no_wrap` lines that are too long end in `…`."""
    if sys.stdout.isatty():
        _print(Console(), *parts, no_wrap=no_wrap)
    else:
        click.echo(
            _lines(*parts, no_wrap=no_wrap, colours="auto"), nl=False, color=True
        )  # `FORCE_COLOR` may ask for some


def as_lines(*parts: RenderableType) -> str:
    """What `say` prints where there is no terminal, without colours."""
    return _lines(*parts, no_wrap=False, colours=None)


def _lines(*parts: RenderableType, no_wrap: bool, colours: Literal["auto"] | None) -> str:
    """Without the spaces with which tables fill their lines."""
    text = io.StringIO()
    _print(Console(file=text, width=WIDTH_WITHOUT_TERMINAL, color_system=colours), *parts, no_wrap=no_wrap)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


def _print(console: Console, *parts: RenderableType, no_wrap: bool) -> None:
    for part in parts:
        console.print(part, no_wrap=no_wrap or None, overflow="ellipsis" if no_wrap else None)
