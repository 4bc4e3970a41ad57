"""Findings that rules made and reports leave out, for comparisons; no part of the public report."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from tb_tidy_plugin.report.model import Finding, Outcome
from tb_tidy_plugin.report.value import Model

LeftOutFor: TypeAlias = Literal["limit", "covered"]


class LeftOutFinding(Model, frozen=True):
    """A finding that the report leaves out.

    Attributes:
        id, rule, share: as in `Finding`. cost_ns: per step.
        reason: `limit` if it is below one of the rule's limits, `covered` if findings of the rule `by` cover it.
        lines: function and text of the lines of its places whose text is known.
        ns_by_step: its cost in each step; empty for findings about several ranks.
    """

    id: str
    rule: str
    reason: LeftOutFor
    cost_ns: int
    share: float | None = None
    by: str = ""
    lines: list[tuple[str, str]] = msgspec.field(default_factory=list)
    ns_by_step: list[int] = msgspec.field(default_factory=list)


class AboutRun(Model, frozen=True):
    """What rules over several ranks say about one run, and what its report leaves out of it."""

    outcomes: list[Outcome] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    left_out: list[LeftOutFinding] = msgspec.field(default_factory=list)
