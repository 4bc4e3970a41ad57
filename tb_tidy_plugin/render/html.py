"""Documents as one page of HTML to mail, keep and print. It loads nothing and runs nothing.

Strings are untrusted. Each passes `_escaped`, which also replaces invisible characters, and the page's own policy
allows neither scripts nor requests. Only this module creates `Html`; mypy distinguishes it from text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import NewType

from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.words.visible import visible

Html = NewType("Html", str)

_CODE = re.compile(r"`([^`]*)`")
_LONGEST_STRING = 20_000
_BREAK = Html("<br>")
_TAGS = {"code": "code", "strong": "b"}
_HEAD = """\
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
"""


def to_html(document: doc.Document) -> str:
    """The document as an HTML page."""
    title = _escaped(document.title)
    head = _element("head", Html(_HEAD), _element("title", title), _element("style", _style()))
    main = _element("main", _element("h1", title), _blocks(document.blocks))
    body = _element("body", main, _element("footer", _escaped(document.footer), class_="muted"))
    return f"<!DOCTYPE html>\n{_element('html', head, body, lang='en')}\n"


@cache
def _style() -> Html:
    return Html(files("tb_tidy_plugin.render").joinpath("page.css").read_text(encoding="utf-8"))


def _element(name: str, *content: Html, **attributes: str) -> Html:
    """An element with those attributes that have a value. `class_` stands for `class`, a keyword of Python."""
    given = (f' {key.rstrip("_").replace("_", "-")}="{_escaped(text)}"' for key, text in attributes.items() if text)
    return Html(f"<{name}{''.join(given)}>{''.join(content)}</{name}>")


def _escaped(text: str) -> Html:
    """Lines without markup, control characters or changes of direction, cut if they are absurdly long."""
    cut = text if len(text) <= _LONGEST_STRING else f"{text[: _LONGEST_STRING - 1]}…"
    return Html(html.escape("\n".join(map(visible, cut.expandtabs(4).split("\n")))))


def _blocks(blocks: Iterable[doc.Block]) -> Html:
    return Html("\n".join(part for block in blocks for part in _parts(block)))


def _parts(block: doc.Block) -> Iterator[Html]:
    match block:
        case doc.Section(title, blocks, level, anchor, severity):
            mark = (doc.Span(severity, "mark"), " ") if severity else ()
            heading = _element(f"h{level}", _line((*mark, *title)))
            name = "article" if severity else "section"
            yield _element(name, heading, _blocks(blocks), id=anchor, class_=f"level-{level}")
        case doc.Fold(title, blocks, kind):
            is_open = "open" if kind == "list" else ""
            yield _element("details", _element("summary", _line(title)), _blocks(blocks), open=is_open)
        case doc.Paragraph(line, label, style) if line:
            named = (_element("b", _escaped(f"{label}: ")),) if label else ()
            yield _element("p", *named, _line(line), class_=style or "")
        case doc.Table():
            yield _table(block)
        case doc.Listing(items):
            yield _element("ul", *(_element("li", _line(item)) for item in items))
        case doc.CodeBlock(text, caption, line):
            number = (_element("span", _escaped(str(line)), class_="line-number"),) if line is not None else ()
            above = (_element("figcaption", _escaped(caption)),) if caption else ()
            yield _element("figure", *above, _element("pre", *number, _escaped(text), class_=caption.lower()))
        case doc.FigureStrip(figures):
            yield _element("dl", *map(_figure, figures))
        case doc.Chart():
            yield _chart(block)
        case _:
            pass  # a gap


def _line(line: doc.Line) -> Html:
    return Html("".join(_escaped(piece) if isinstance(piece, str) else _span(piece) for piece in line))


def _span(span: doc.Span) -> Html:
    text = _escaped(span.text)
    match span.kind:
        case "message":
            parts = map(_escaped, _CODE.split(span.text))
            return Html("".join(_element("code", part) if at % 2 else part for at, part in enumerate(parts)))
        case "link":
            return _element("a", _span(doc.message(span.text)), href=f"#{span.to}")
        case "swatch":
            return _element("span", class_=f"swatch part-{text}", aria_hidden="true")
        case "meter":
            return _element("span", _element("span", style=f"width:{float(span.text):.1%}"), class_="meter")
        case "mark":
            sign = Html(doc.SEVERITY_MARKS.get(span.text, ""))
            return _element("span", sign, class_=f"mark {text}", role="img", aria_label=f"{text} severity")
        case kind:
            return (
                _BREAK
                if kind == "break"
                else _element(_TAGS.get(kind, "span"), text, class_="" if kind in _TAGS else kind)
            )


def _table(table: doc.Table) -> Html:
    kinds = [""] * len(table.texts) + ["number"] * len(table.numbers)
    titles = zip((*table.texts, *table.numbers), kinds, strict=True)
    head = (_element("th", _escaped(title), scope="col", class_=kind) for title, kind in titles)
    rows = []
    for name, *others in table.rows:
        cells = (_element("td", _line(cell), class_=kind) for cell, kind in zip(others, kinds[1:], strict=True))
        rows.append(_element("tr", _element("th", _line(name), scope="row", class_=kinds[0]), *cells))
    shown = _element("table", _element("thead", _element("tr", *head)), _element("tbody", *rows))
    return _element("div", shown, class_="wide", tabindex="0")


def _figure(figure: doc.Figure) -> Html:
    value = _element("dd", _escaped(figure.value), _line((doc.muted(figure.unit),)), class_="value")
    notes = (_element("dd", _escaped(note), class_="muted") for note in figure.notes)
    name = _element("dt", _escaped(figure.name))
    return _element("div", name, value, *notes, class_="strong" if figure.strong else "")


def _chart(chart: doc.Chart) -> Html:
    """One bar, explained by a table beside it, or columns with a caption for those who cannot see them."""
    bars = [_element("div", *_colours(bar), style=f"height:{bar.height:.2%}") for bar in chart.bars]
    if len(bars) == 1:
        return _element("div", *bars, class_="bar", aria_hidden="true")
    drawn = _element("div", *bars, class_="columns", role="img", aria_label=chart.caption)
    return _element("figure", drawn, _element("figcaption", _escaped(chart.caption)))


def _colours(bar: doc.Bar) -> Iterator[Html]:
    """The parts of a bar, or a neutral one if they are unknown."""
    for name, share in bar.parts or (("other", 1.0),):
        yield _element("span", class_=f"part-{name}", style=f"flex-grow:{share:.4f}")
