"""From rules to what is reported: the floor for every finding, one rule per time, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tb_tidy_plugin.analysis.assemble import checked, looked
from tb_tidy_plugin.analysis.checker import Clean, Found
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import draw
from tests.support.made_up_rule import Evidence, SlowMultiplication

MM = "aten::mm  100-{end}  dims=4x4,4x4  types=float,float"


class OtherRule(SlowMultiplication):
    """The same again under another name, with the same page."""

    __module__ = SlowMultiplication.__module__
    yields_to = ("made-up-rule",)

    @classmethod
    def name(cls) -> str:
        return "other-rule"


@pytest.mark.parametrize(("end", "is_found"), [(149, False), (150, True)])
def test_less_than_half_a_per_cent_of_the_step_is_not_reported(end: int, is_found: bool) -> None:
    outcomes, findings = checked(draw(f"ProfilerStep#1  0-10000\n  {MM.format(end=end)}"), [SlowMultiplication()])
    outcome = outcomes["made-up-rule"]
    assert isinstance(outcome, Found) is is_found
    assert len(findings) == is_found
    if not is_found:
        assert outcome == Clean("Left out: 1 finding below 0.5 % of a step (`min-share`).")


def test_users_may_ask_for_less() -> None:
    profile = draw(f"ProfilerStep#1  0-10000\n  {MM.format(end=101)}")
    assert not checked(profile, [SlowMultiplication()])[1]
    assert checked(profile, [SlowMultiplication({"min_share": 0.0})])[1]


def test_what_belongs_to_another_rule_is_said() -> None:
    profile = draw(f"ProfilerStep#1  0-1000\n  {MM.format(end=900)}")
    outcomes, findings = checked(profile, [OtherRule(), SlowMultiplication()])
    assert [evidence.finding.rule for evidence in findings] == ["made-up-rule"]
    assert outcomes["other-rule"] == Clean("Left out: 1 finding that `made-up-rule` covers.")


def test_a_rule_yields_only_to_what_is_reported() -> None:
    """A finding that is too small to show would take away one that is not."""
    profile = draw(f"ProfilerStep#1  0-1000\n  {MM.format(end=900)}")
    outcomes, findings = checked(profile, [OtherRule(), SlowMultiplication({"min_share": 0.9})])
    assert [evidence.finding.rule for evidence in findings] == ["other-rule"]
    assert isinstance(outcomes["other-rule"], Found)


class RuleOfLedger(OtherRule):
    reads_ledger = True


def test_rules_that_read_the_ledger_run_last_and_are_listed_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def detect(rule: SlowMultiplication, _: Profile) -> Iterator[Match[Evidence]]:
        ran.append(rule.name())
        yield from ()

    monkeypatch.setattr(SlowMultiplication, "detect", detect)
    profile, rules = draw(MM.format(end=101)), [RuleOfLedger(), SlowMultiplication()]
    outcomes = looked(profile, rules, before_ledger=lambda: ran.append("between"))
    assert ran == ["made-up-rule", "between", "other-rule"]
    assert list(outcomes) == ["other-rule", "made-up-rule"]


def test_progress_counts_rules() -> None:
    seen: list[float] = []
    checked(draw("aten::mm  0-10"), [SlowMultiplication(), OtherRule()], seen.append)
    assert seen == [0, 0.5]
