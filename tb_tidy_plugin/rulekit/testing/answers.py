"""Answers of a rule to a profile, through the checker and the report's own grouping."""

from __future__ import annotations

from tb_tidy_plugin.analysis.checker import Clean, Found, NotChecked, check_rule
from tb_tidy_plugin.analysis.findings import findings_of
from tb_tidy_plugin.report.model import Finding
from tb_tidy_plugin.rulekit import Match, Profile, Rule


def matches_of(rule: type[Rule] | Rule, profile: Profile) -> tuple[Match, ...]:
    """The matches; the test fails if the rule was not checked or failed."""
    outcome = check_rule(profile, _instance(rule))
    assert isinstance(outcome, Found | Clean), outcome
    return outcome.matches if isinstance(outcome, Found) else ()


def findings(rule: type[Rule] | Rule, profile: Profile) -> list[Finding]:
    """The rule's own findings, with bounds as savings, independent of the rest of the profile."""
    return [evidence.finding for evidence in findings_of(profile, _instance(rule), matches_of(rule, profile))]


def saving_ns(rule: type[Rule] | Rule, profile: Profile) -> tuple[int, int, int]:
    """Low, expected and high bound on the saving of the only finding, per step."""
    (finding,) = findings(rule, profile)
    assert finding.saving is not None
    return finding.saving.low_ns, finding.saving.expected_ns, finding.saving.high_ns


def reason_not_checked(rule: type[Rule] | Rule, profile: Profile) -> str:
    """The reason why the rule was not checked; the test fails if it was."""
    outcome = check_rule(profile, _instance(rule))
    assert isinstance(outcome, NotChecked), outcome
    return outcome.reason


def _instance(rule: type[Rule] | Rule) -> Rule:
    return rule if isinstance(rule, Rule) else rule()
