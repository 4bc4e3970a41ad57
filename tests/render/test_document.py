"""Documents of every kind of block, by every printer, with strings that mean harm."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.render import document as doc
from tb_tidy_plugin.render.html import to_html
from tb_tidy_plugin.render.markdown import to_markdown
from tb_tidy_plugin.render.terminal import to_text
from tests.fuzz.pipeline import OBEYED

EVIL = "</pre></p><script>alert(1)</script>\x1b]0;x\x07\u202e`[b](http://e.vil)*| @team #1\r\n---"

KINDS: tuple[doc.SpanKind, ...] = (
    "message", "code", "link", "strong", "muted", "good", "warning", "bad", "swatch", "mark", "break",
)  # fmt: skip


def every_block(text: str) -> doc.Document:
    """Each kind of block and of span, with `text` wherever a string goes."""
    line: doc.Line = (text, *(doc.Span(text, kind, text) for kind in KINDS), doc.Span("0.5", "meter"))
    bar = doc.Bar(((text, 0.25), (text, 0.75)), 0.5)
    blocks = (
        doc.Paragraph(line, text, "warning", below=line),
        doc.Paragraph(line, text, "good"),
        doc.GAP,
        doc.Table((text, text), (text,), ((line, line, line),)),
        doc.Listing((line, line)),
        doc.CodeBlock(text, text),
        doc.CodeBlock(text, "Before", line=7),
        doc.FigureStrip((doc.Figure(text, text, (text,), text, strong=True),)),
        doc.Chart((bar,), text),
        doc.Chart((bar, doc.Bar(())), text),
        doc.Fold(line, (doc.sentence(text),)),
        doc.Fold(line, (doc.sentence(text),), "details"),
        doc.Section(line, (doc.sentence(text),), 4, text, "high", text),
        doc.section(text, doc.sentence(text)),
    )
    return doc.Document(text, (doc.Section(line, blocks),), "tb-tidy check", text)


def rendered(document: doc.Document) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table"]).render(to_markdown(document)))


def test_every_printer_shows_every_block() -> None:
    document = every_block("words")
    for text in (as_lines(to_text(document)), to_markdown(document), to_html(document)):
        assert text.count("words") > 100


def test_no_string_is_obeyed_by_a_terminal_or_shown_other_than_it_is() -> None:
    document = every_block(EVIL)
    for text in (as_lines(to_text(document)), to_markdown(document), to_html(document)):
        text.encode()
        assert not OBEYED.search(text)


@given(st.one_of(st.just(EVIL), st.text(alphabet="<>&\"'`{}%#!-=+1./=\\|@*_[]() \n\t\x1b\u2028ab")))
def test_no_string_becomes_markup(text: str) -> None:
    """Whatever a string holds, the elements are those of a harmless one."""
    for printed in (to_html, rendered):
        found, usual = (re.findall(r"</?[a-zA-Z][\w-]*", printed(every_block(each))) for each in (text, "a `b`"))
        assert set(found) <= set(usual)


@pytest.mark.parametrize(
    "text", ["- x", "+ x", "1. x", "12) x", "---", "===", "    x", "\t", "# x", "> x", "* * *", "<!-- x", "|---|"]
)
def test_no_string_becomes_a_list_a_rule_or_a_heading(text: str) -> None:
    page = rendered(doc.Document("", (doc.sentence(text), doc.sentence("next")), ""))
    assert re.findall(r"<(\w+)", page) == ["p"] * (2 if text.strip() else 1)
    captions = rendered(doc.Document("", (doc.Chart((), text), doc.CodeBlock("x", text)), ""))
    assert {"ol", "ul", "li", "hr", "h1", "h2"}.isdisjoint(re.findall(r"<(\w+)", captions))
    assert text.strip() in html.unescape(page).replace("\u200b", "")
