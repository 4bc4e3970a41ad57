"""Documents on a terminal.

Strings are shown without control characters and never read as rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.report.value import Severity
from tb_tidy_plugin.words.visible import visible

STYLES = {
    "strong": "bold", "muted": "dim", "good": "green", "warning": "yellow", "bad": "bold red",
    "high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim",
}  # fmt: skip


def to_text(document: doc.Document) -> RenderableType:
    """The document, for rich to print. Its title is left out, since the user has just typed the command."""
    return _group(document.blocks)


def plain(text: str) -> Text:
    """Untrusted text without control characters of a terminal."""
    return Text(visible(text))


def _group(blocks: Iterable[doc.Block]) -> Group:
    return Group(*(part for block in blocks for part in _parts(block)))


def _parts(block: doc.Block) -> Iterator[RenderableType]:  # noqa: C901 - a case for each kind
    match block:
        case doc.Section(severity=severity) if severity:
            yield _card(block, severity)
        case doc.Section(level=2):
            yield from (_text(block.title, "bold"), _indented(_group(block.blocks)), Text())
        case doc.Section():
            yield from (Text(), _text(block.title, "bold"), _group(block.blocks))
        case doc.Fold(title, blocks):
            yield from (_text((*title, ":"), "dim"), _indented(_group(blocks)))
        case doc.Paragraph(line, label, style, below):
            marked = STYLES.get(style or "", "")
            yield Text.assemble((f"{visible(label)}: ", marked), _text(line)) if label else _text(line, marked)
            yield from (_indented(_text(line)) for line in (below,) if line)
        case doc.Table():
            yield _table(block)
        case doc.Listing(items):
            yield from map(_text, items)
        case doc.CodeBlock(text, caption):
            yield Text(f"{visible(caption)}:", "dim")
            yield from (_indented(plain(line)) for line in text.splitlines())
        case doc.FigureStrip(figures):
            yield from (_text((f"{each.name}: {each.value}{each.unit}",)) for each in figures)
        case doc.Chart(_, caption):
            yield plain(caption)


def _text(line: doc.Line, style: str = "") -> Text:
    text = Text()
    for piece in line:
        match piece:
            case str():
                text.append(visible(piece), style)
            case doc.Span(kind="break"):
                text.append("\n")
            case doc.Span(kind="swatch" | "meter" | "mark"):
                pass
            case doc.Span(words, kind):
                text.append(visible(words), STYLES.get(kind, style))
    return text


def _table(table: doc.Table) -> Table:
    shown = Table(box=None, pad_edge=False, header_style="dim")
    for title in table.texts:
        shown.add_column(plain(title), overflow="fold")
    for title in table.numbers:
        shown.add_column(plain(title), justify="right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(_text, row))
    return shown


def _card(section: doc.Section, severity: Severity) -> Table:
    """A finding: mark, title and saving in the first line, everything else below the title."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=1)
    table.add_column(ratio=1, overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    style = STYLES[severity]
    table.add_row(
        Text(doc.SEVERITY_MARKS[severity], style), _text(section.title, "bold"), Text(visible(section.aside), style)
    )
    table.add_row("", _group(section.blocks), "")
    table.add_row("", "", "")
    return table


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2))
