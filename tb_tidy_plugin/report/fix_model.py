"""Fixes of findings in the user's own code, as JSON and SARIF hold them."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.report.value import Model


class Replacement(Model, frozen=True):
    """A region of a file, and the text that takes its place. Lines and columns are 1-based; the end is exclusive."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    text: str


class CodeFix(Model, frozen=True):
    """The change of one file that fixes one place of a finding.

    Attributes:
        finding: its id.
        file, line: the place, as the recording names it.
        saving_ns: expected saving of the whole finding per step; null where it is not known.
        safety: `same results`, `same up to rounding` or `changes behaviour: …`.
        check: what to check before using the change; empty where it needs no review.
        diff: unified, without carriage returns.
        replacements: the same change by regions, in the order of the file.
    """

    finding: str
    rule: str
    file: str
    line: int
    saving_ns: int | None
    safety: str
    check: str
    diff: str
    replacements: list[Replacement]


class Unfixed(Model, frozen=True):
    """A place whose rule can change code, and the reason why it does not."""

    finding: str
    rule: str
    file: str
    line: int
    reason: str


class Fixes(Model, frozen=True):
    """All fixes under one path, and what was written of them: `written` names files by their real paths."""

    schema: int
    version: str
    fixes: list[CodeFix]
    unfixed: list[Unfixed]
    problems: list[Problem]
    written: list[str] = msgspec.field(default_factory=list)
