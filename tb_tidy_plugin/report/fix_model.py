"""The answer of `tb-tidy fix` as JSON."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.report.code_model import CodeFix
from tb_tidy_plugin.report.model import Problem
from tb_tidy_plugin.report.value import Model


class Unfixed(Model, frozen=True):
    """A place whose rule can change code, and the reason why it does not."""

    finding: str
    rule: str
    file: str
    line: int
    reason: str


class Fixes(Model, frozen=True):
    """All fixes under one path, and what was written of them.

    `written` names files by their real paths. `left_out` is the number of fixes that the options leave out: of `fixes`
    with `--safe-only`, else of what `--apply` writes.
    """

    schema: int
    version: str
    fixes: list[CodeFix]
    unfixed: list[Unfixed]
    problems: list[Problem]
    written: list[str] = msgspec.field(default_factory=list)
    left_out: int = 0
