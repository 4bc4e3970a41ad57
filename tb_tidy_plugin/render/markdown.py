"""Documents as Markdown, for comments on pull requests.

Strings of a trace are untrusted: none of them becomes markup, a link or a mention on the code host. GitHub looks for
mentions in the rendered Markdown, so escaping is not enough: a zero-width space separates `@` from a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.words.units import Count
from tb_tidy_plugin.words.visible import visible

LONGEST_COMMENT = 65_536  # GitHub's limit for a comment
LAST_LINE_ROOM = 200
_LONGEST_STRING = 1000

MARKUP = re.compile(r"[\\`*_\[\]<>|~&$#@]|:(?! )|(?<=www)\.")  # a colon before a space is not part of an address
LINE_START = re.compile(r"[-+=](?=[-+=\s]|$)|\d+[.)](?=\s|$)")  # of a list, a rule or an underline
SPAN = re.compile(r"`([^`]*)`")
FENCE = re.compile(r"`+")
NEW_LINE = "\n"

# Left out first if the document is too long: lists that stand alone, then details of the least finding.
_HEAD, ROW, DETAIL, REST = range(4)
LEFT_OUT = {_HEAD: "headings", ROW: "lines of tables", DETAIL: "findings’ details", REST: "lists of unchecked rules"}


_Chunk: TypeAlias = tuple[int, str]
"""A rank, and a text that is kept or left out as a whole. Texts of the highest rank are left out first."""


def to_markdown(document: doc.Document, longest: int = LONGEST_COMMENT) -> str:
    """The document in at most `longest` bytes; its last line says what was left out."""
    chunks = list(_all(document.blocks))
    kept = _fitting(chunks, longest - LAST_LINE_ROOM)
    text = "".join(text for at, (_, text) in enumerate(chunks) if at in kept).lstrip("\n")
    left_out = Counter(rank for at, (rank, _) in enumerate(chunks) if at not in kept)
    if not left_out:
        return text
    listed = ", ".join(f"{name}: {Count(left_out[rank])}" for rank, name in LEFT_OUT.items() if left_out[rank])
    return f"{text}\nLeft out, as a comment has its limit: {listed}. `{document.command}` shows all.\n"


def _fitting(chunks: list[_Chunk], room: int) -> set[int]:
    """Numbers of the chunks that fit, important ones first."""
    kept = set()
    for at in sorted(range(len(chunks)), key=lambda at: chunks[at][0]):
        size = len(chunks[at][1].encode("utf-8", "replace"))
        if size <= room:
            room -= size
            kept.add(at)
    return kept


def _all(blocks: Iterable[doc.Block]) -> Iterator[_Chunk]:
    return (chunk for block in blocks for chunk in _chunks(block))


def _chunks(block: doc.Block) -> Iterator[_Chunk]:
    match block:
        case doc.Section(title, blocks, level):
            yield (_HEAD, f"\n{'#' * level} {_line(title)}\n")
            yield from _all(blocks)
        case doc.Fold(title, blocks, kind):
            body = "".join(text for _, text in _all(blocks)).strip("\n")
            folded = f"\n<details><summary>{_line(title, in_html=True)}</summary>\n\n{body}\n\n</details>\n"
            yield (DETAIL if kind == "details" else REST, folded)
        case doc.Paragraph(line, label, style) if line:
            start = "> " if style == "warning" else f"**{_plain(label)}:** " if label else ""
            yield (_HEAD, f"\n{start}{_line(line)}\n")
        case doc.Table(texts, numbers, rows):
            marks = "---|" * len(texts) + "--:|" * len(numbers)
            yield (_HEAD, f"\n| {' | '.join(map(_plain, (*texts, *numbers)))} |\n|{marks}\n")
            yield from ((ROW, f"| {' | '.join(map(_line, row))} |\n") for row in rows)
        case doc.Listing(items):
            yield from ((ROW, f"{'' if at else NEW_LINE}- {_line(item)}\n") for at, item in enumerate(items))
        case doc.CodeBlock(text, caption):
            yield (_HEAD, f"\n{_line((caption,))}:\n\n{_fenced(text)}\n")
        case doc.FigureStrip(figures):
            yield from _chunks(doc.Listing(tuple((f"{each.name}: {each.value}{each.unit}",) for each in figures)))
        case doc.Chart(_, caption):
            yield (_HEAD, f"\n{_line((caption,))}\n")
        case _:
            pass  # a gap


def _line(line: doc.Line, *, in_html: bool = False) -> str:
    """A line as Markdown; as HTML inside a summary, where Markdown has no effect."""
    text = "".join(_piece(piece, in_html=in_html) for piece in line).strip()
    start = None if in_html else LINE_START.match(text)
    return text if start is None else f"{_escaped(start[0])}{text[start.end() :]}"


def _piece(piece: str | doc.Span, *, in_html: bool) -> str:
    if isinstance(piece, str):
        return _plain(piece)
    match piece.kind:
        case "message" | "link":
            parts = enumerate(SPAN.split(_shown(piece.text)))
            return "".join(_code(part, in_html=in_html) if at % 2 else _plain(part) for at, part in parts)
        case "code":
            return _code(piece.text, in_html=in_html)
        case "break":
            return "<br>"
        case "swatch" | "meter" | "mark":
            return ""
        case kind:
            strong = ("<b>", "</b>") if in_html else ("**", "**")
            return _plain(piece.text).join(strong if kind == "strong" else ("", ""))


def _code(text: str, *, in_html: bool) -> str:
    """A string as code on one line, safe inside a table."""
    line = _shown(text).strip()
    if not line:
        return ""
    return f"<code>{_plain(line)}</code>" if in_html or "`" in line or "|" in line else f"`{line}`"


def _fenced(code: str) -> str:
    """Code between fences that are longer than any fence within it."""
    longest = max((len(run) for run in FENCE.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = (visible(line.expandtabs(4)) for line in code.splitlines())
    return "\n".join((f"{fence}python", *shown, fence))


def _plain(text: str) -> str:
    """A string without active markup."""
    return MARKUP.sub(lambda found: f"{_escaped(found[0])}{'&#8203;' if found[0] in '@#' else ''}", _shown(text))


def _escaped(text: str) -> str:
    return "".join(f"&#{ord(each)};" for each in text)


def _shown(text: str) -> str:
    """A string in one line of limited length, without invisible characters."""
    shown = visible(text, " ")
    return shown if len(shown) <= _LONGEST_STRING else f"{shown[: _LONGEST_STRING - 1]}…"
