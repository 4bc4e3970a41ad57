"""Tables and text on the terminal, or as lines without one."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Literal, TextIO

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 100
WHOLE_LINES = 10_000
"""Most characters of a line that does not wrap, for output that is not a terminal."""

BEFORE_UNIT = re.compile(r"(?<=\d) (?=(%|[nµm]?s|[KMGT]?i?B)(?!\w))")
GLUE = "\ue000"  # not in any alphabet, and as wide as a space; rich also breaks lines at no-break spaces


def say(*parts: RenderableType, no_wrap: bool = False) -> None:
    """Prints `parts`, each below the other. With `no_wrap`, lines end in `…` where the terminal does."""
    if sys.stdout.isatty():
        _print(_Console(), *parts, no_wrap=no_wrap)
    else:
        lines = _lines(*parts, no_wrap=no_wrap, colours="auto")
        click.echo(lines, nl=False, color=True)  # any colours are there because of `FORCE_COLOR`


def say_aligned(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table with one line for each row, for pipes, where nothing may be cut or wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def as_lines(*parts: RenderableType) -> str:
    """The output of `say` without a terminal, without colours."""
    return _lines(*parts, no_wrap=False, colours=None)


class _Console(Console):
    """Breaks no line between a number and its unit, and draws no emoji for a name such as `:fire:`."""

    def __init__(
        self, file: TextIO | None = None, width: int | None = None, color_system: Literal["auto"] | None = "auto"
    ) -> None:
        """As rich's, with these options only."""
        super().__init__(file=file, width=width, color_system=color_system, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Renders like rich, with glue in place of such a space while lines are broken."""
        if not isinstance(renderable, Text):
            yield from super().render(renderable, options)
            return
        text = renderable.copy()
        text.plain = BEFORE_UNIT.sub(GLUE, text.plain)
        for segment in super().render(text, options):
            yield segment._replace(text=segment.text.replace(GLUE, " "))


def _lines(*parts: RenderableType, no_wrap: bool, colours: Literal["auto"] | None) -> str:
    """The lines, without the trailing spaces of tables."""
    text = io.StringIO()
    _print(_Console(text, WHOLE_LINES if no_wrap else WIDTH_WITHOUT_TERMINAL, colours), *parts, no_wrap=no_wrap)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])


def _print(console: Console, *parts: RenderableType, no_wrap: bool) -> None:
    for part in parts:
        console.print(part, no_wrap=no_wrap or None, overflow="ellipsis" if no_wrap else None)
