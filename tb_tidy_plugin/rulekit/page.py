"""A rule's page: its module docstring, cut into the sections that every page has."""

from __future__ import annotations

import inspect
import re
import sys

import msgspec

from tb_tidy_plugin.rulekit.rule import AnyRule

SECTIONS = (
    "What it finds",
    "Why it is slow",
    "Example",
    "How the saving is estimated",
    "When it stays quiet",
)
"""Headings of a page, in their order."""

_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


class RulePage(msgspec.Struct, frozen=True):
    """Title and sections of one rule; texts are Markdown.

    Attributes:
        title: the first line, without its full stop.
        sections: text by heading, in the order of the page.
        before, after: the two code blocks of the example.
    """

    title: str
    sections: dict[str, str]
    before: str
    after: str


def page_of(rule: type[AnyRule]) -> RulePage:
    """The page of `rule`.

    Raises:
        ValueError: the docstring lacks a section or a code block.
    """
    text = inspect.cleandoc(sys.modules[rule.__module__].__doc__ or "")
    title, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = {heading.strip(): body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}
    if tuple(sections) != SECTIONS:
        raise ValueError(f"{rule.name()}: the page needs the sections {', '.join(SECTIONS)}, in this order")
    examples = _CODE.findall(sections["Example"])
    if len(examples) != 2:
        raise ValueError(f"{rule.name()}: the example needs two code blocks, before and after")
    return RulePage(title.strip().removesuffix("."), sections, examples[0].rstrip(), examples[1].rstrip())
