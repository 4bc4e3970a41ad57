"""Documents: blocks of text, built from a report, a summary or a comparison, and printed in one of several forms.

Any string in a document may come from a trace. Printers show strings literally: none becomes markup, a link, or a
terminal's control sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.report.value import Severity

Form: TypeAlias = Literal["text", "markdown", "html"]
"""A document for a terminal, for a comment on a pull request, or for a page of its own."""

Style: TypeAlias = Literal["strong", "muted", "good", "warning", "bad"]
SpanKind: TypeAlias = Style | Literal["message", "code", "link", "swatch", "meter", "mark", "break"]

SEVERITY_MARKS: Mapping[str, str] = {"high": "▲", "medium": "◆", "low": "●", "info": "○"}


class Span(msgspec.Struct, frozen=True):
    """Words of one kind.

    A `message` is a sentence in which backticks mark code, `code` a name, a `link` a message that leads to the section
    with the anchor `to`. A `swatch` (the colour of a part), a `meter` (`0.12`) and a `mark` (a severity) are drawn.
    """

    text: str
    kind: SpanKind
    to: str = ""


Line: TypeAlias = tuple[str | Span, ...]


class Section(msgspec.Struct, frozen=True):
    """A heading and the blocks below it. The section of a finding has a severity; `aside` is the saving."""

    title: Line
    blocks: tuple[Block, ...]
    level: int = 2
    anchor: str = ""
    severity: Severity | None = None
    aside: str = ""


class Fold(msgspec.Struct, frozen=True):
    """Blocks that fold. `details` belong to something above and start folded, a `list` starts open."""

    title: Line
    blocks: tuple[Block, ...]
    kind: Literal["details", "list"] = "list"


class Paragraph(msgspec.Struct, frozen=True):
    """Sentences. The style applies to the label if there is one. A `warning` stands out; `below` is indented."""

    line: Line
    label: str = ""
    style: Style | None = None
    below: Line = ()


class Table(msgspec.Struct, frozen=True):
    """Columns of text, then columns of numbers. The first cell names the row."""

    texts: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


class Listing(msgspec.Struct, frozen=True):
    """One line per item."""

    items: tuple[Line, ...]


class CodeBlock(msgspec.Struct, frozen=True):
    """Source code with a caption or with the number of its line."""

    text: str
    caption: str = ""
    line: int | None = None


class Figure(msgspec.Struct, frozen=True):
    """A named figure with notes on its origin. Readers look for the `strong` ones."""

    name: str
    value: str
    notes: tuple[str, ...] = ()
    unit: str = ""
    strong: bool = False


class FigureStrip(msgspec.Struct, frozen=True):
    """Figures side by side."""

    figures: tuple[Figure, ...]


class Bar(msgspec.Struct, frozen=True):
    """Parts of a whole: the name and the share (0 to 1) of each. `height` is relative to the highest bar."""

    parts: tuple[tuple[str, float], ...]
    height: float = 1.0


class Chart(msgspec.Struct, frozen=True):
    """Columns side by side, or a single bar across the page. The caption says the same in words."""

    bars: tuple[Bar, ...]
    caption: str


Block: TypeAlias = Section | Fold | Paragraph | Table | Listing | CodeBlock | FigureStrip | Chart

GAP = Paragraph(())
"""An empty line on a terminal."""

BREAK = Span("", "break")


def message(text: str) -> Span:
    """A sentence with code in backticks, as in rules and errors."""
    return Span(text, "message")


def code(text: str) -> Span:
    """The name of a rule, a file, a function."""
    return Span(text, "code")


def muted(text: str) -> Span:
    """Words of minor importance."""
    return Span(text, "muted")


def sentence(text: str, label: str = "", style: Style | None = None) -> Paragraph:
    """A paragraph of one message."""
    return Paragraph((message(text),), label, style)


def section(title: str, *blocks: Block, level: int = 3) -> Section:
    """A section with a plain title."""
    return Section((title,), blocks, level)


class Document(msgspec.Struct, frozen=True):
    """Blocks under a title. `command` prints everything on a terminal, for forms that must leave things out."""

    title: str
    blocks: tuple[Block, ...]
    command: str
    footer: str = ""
