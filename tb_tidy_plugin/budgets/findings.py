"""Findings that a budget does not allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_tidy_plugin.analysis.assemble import Analysis
from tb_tidy_plugin.budgets.bounds import bound_of
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.words.units import plural
from tb_tidy_plugin.words.visible import visible

_MOST_LINES = 5


def broken_by_findings(analysis: Analysis, allowed: int | Sequence[str]) -> str:
    """Lines of text about too many findings, or about rules that may find nothing; empty if the budget is kept.

    A named rule that could not be checked also breaks the budget.

    Raises:
        ValueError: `allowed` is neither a number nor a list of names of rules.
    """
    found = analysis.report.findings
    if isinstance(allowed, str) or (
        not isinstance(allowed, int) and not all(isinstance(each, str) for each in allowed)
    ):
        raise ValueError(f"findings={allowed!r} must be a number or a list of rules")
    if isinstance(allowed, int) or not allowed:
        bound = bound_of("findings", allowed if isinstance(allowed, int) else 0)
        if bound.holds(len(found)):
            return ""
        return "\n".join([f"findings: {len(found)}; {bound.words} {bound.number}", *_lines(found)])
    names = _names(allowed)
    unwanted = [finding for finding in found if finding.rule in names]
    unknown = [
        f"  {each.rule} was not checked: {visible(each.reason or each.status)}"
        for each in analysis.report.outcomes
        if each.rule in names and each.status in {"not_checked", "failed"}
    ]
    if not unwanted and not unknown:
        return ""
    return "\n".join([f"findings: {len(unwanted)} of rules that must report none", *_lines(unwanted), *unknown])


def _names(rules: Iterable[str]) -> frozenset[str]:
    names = {key: rule.name() for rule in catalogue() for key in (rule.name(), rule.code)}
    if unknown := [rule for rule in rules if rule not in names]:
        raise ValueError(f"findings names {', '.join(unknown)}, which `tb-tidy rules` does not list")
    return frozenset(names[rule] for rule in rules)


def _lines(findings: Sequence[Finding]) -> list[str]:
    lines = [f"  {finding.rule}: {visible(finding.message)}{_where(finding)}" for finding in findings[:_MOST_LINES]]
    further = len(findings) - _MOST_LINES
    return lines + ([f"  and {plural(further, 'further finding')}"] if further > 0 else [])


def _where(finding: Finding) -> str:
    return f" at {visible(finding.places[0].file)}:{finding.places[0].line}" if finding.places else ""
