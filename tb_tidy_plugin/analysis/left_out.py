"""Findings that a rule made and a report leaves out: below a limit of the rule, or covered by another rule.

A cost near a limit is above it in one recording and below it in the next. A comparison that only knows the report would
call such a finding gone or new. So each rule that was checked looks once more, with `relaxed_settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from tb_tidy_plugin.analysis.checker import Clean, Failed, Found, RuleOutcome, check_rule, unless_broken
from tb_tidy_plugin.analysis.findings import Group, Known, TracedFinding, groups_of, id_of, without_yielded
from tb_tidy_plugin.analysis.ignores import PathIgnores
from tb_tidy_plugin.report.left_out import LeftOutFinding, LeftOutFor
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.rulekit import Match, Profile, Rows, Rule
from tb_tidy_plugin.rulekit.thresholds import relaxed_settings, thresholds_of
from tb_tidy_plugin.trace.columns import Times

_MOST_OF_RULE = 30
"""Most findings of one rule that are kept, most expensive first."""

_MOST_MATCHES = 3000
"""Most matches of one rule whose place is looked up, most expensive first."""


def left_out_as(finding: Finding) -> LeftOutFinding:
    """A finding that was made with weaker limits."""
    lines = [(place.function, place.text) for place in finding.places if place.text]
    return LeftOutFinding(
        id=finding.id, rule=finding.rule, reason="limit", cost_ns=finding.cost_ns, share=finding.share, lines=lines
    )


CostInSteps: TypeAlias = Callable[[Sequence[Match]], Times]
"""Cost in ns of matches in each step."""


class ReportedFindings(NamedTuple):
    """A report's findings and what they were made with.

    Attributes:
        ranked: the findings.
        known: sources of places. ignores: findings that nobody wants. costs_of: the costs of matches.
    """

    profile: Profile
    ranked: Sequence[TracedFinding]
    known: Known
    ignores: PathIgnores
    costs_of: CostInSteps

    @property
    def ids(self) -> set[str]:
        return {traced.finding.id for traced in self.ranked}

    def claimed(self) -> dict[str, Rows]:
        """The events of the findings, by rule."""
        found: dict[str, list[Rows]] = {}
        for traced in self.ranked:
            found.setdefault(traced.finding.rule, []).append(traced.claimed)
        return {rule: np.concatenate(rows) for rule, rows in found.items()}


def left_out_of_profile(
    reported: ReportedFindings, rules: Sequence[Rule], outcomes: Mapping[str, RuleOutcome]
) -> list[LeftOutFinding]:
    """The findings of `rules` with these `outcomes` that are not among the `reported` ones."""
    claimed = reported.claimed()
    found: list[LeftOutFinding] = []
    for rule in rules:
        if _may_have_left_out(rule, outcomes[rule.name()]):
            each = unless_broken(rule, partial(_of_rule, reported, rule, claimed))
            found += [] if isinstance(each, Failed) else each
    return found


def _may_have_left_out(rule: Rule, outcome: RuleOutcome) -> bool:
    """True unless the rule was not checked, or found nothing and has no limit besides that of all rules."""
    return isinstance(outcome, Found) or (
        isinstance(outcome, Clean) and (outcome.reason is not None or len(thresholds_of(type(rule))) > 1)
    )


def _of_rule(reported: ReportedFindings, rule: Rule, claimed: Mapping[str, Rows]) -> list[LeftOutFinding]:
    profile, known_ids = reported.profile, reported.ids
    outcome = check_rule(profile, type(rule)(relaxed_settings(rule)))
    if not isinstance(outcome, Found):
        return []
    found: list[LeftOutFinding] = []
    matches = _most_expensive(profile, outcome.matches)
    left, yielded = without_yielded(profile, rule, matches, claimed)
    kept = {id(match) for match in left}
    covered = [match for match in matches if id(match) not in kept]
    by = max(yielded, key=lambda other: yielded[other], default="")
    parts: tuple[tuple[LeftOutFor, Sequence[Match]], ...] = (("limit", left), ("covered", covered))
    for reason, of_reason in parts:
        groups = groups_of(profile, of_reason, reported.known.locate)
        new = [group for group in groups if group.cost_ns > 0 and id_of(rule, group) not in known_ids]
        wanted = [group for group in new if not reported.ignores.cover(rule.name(), group.files)]
        for group in sorted(wanted, key=lambda group: -group.cost_ns)[:_MOST_OF_RULE]:
            known_ids.add(id_of(rule, group))
            found.append(_left_out(rule, group, reason, by if reason == "covered" else "", reported.costs_of))
    return found


def _most_expensive(profile: Profile, matches: Sequence[Match]) -> Sequence[Match]:
    if len(matches) <= _MOST_MATCHES:
        return matches
    duration_ns = profile.table.end_ns - profile.table.start_ns
    costs = np.array([duration_ns[list(match.events)].sum() for match in matches], np.int64)
    return [matches[at] for at in np.sort(np.argsort(-costs, kind="stable")[:_MOST_MATCHES]).tolist()]


def _left_out(rule: Rule, group: Group, reason: LeftOutFor, by: str, costs_of: CostInSteps) -> LeftOutFinding:
    frames = [frame for _, frame in group.matches if frame is not None and frame.text]
    return LeftOutFinding(
        id=id_of(rule, group),
        rule=rule.name(),
        reason=reason,
        cost_ns=group.cost_ns,
        share=group.share,
        by=by,
        lines=list(dict.fromkeys((frame.function, frame.text) for frame in frames)),
        ns_by_step=costs_of([match for match, _ in group.matches]).tolist(),
    )
