"""Several rules on the same time: the cause speaks."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.analysis.findings import without_yielded, yielding_last
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, row_of
from tb_tidy_plugin.rules import all_rules
from tests.support.made_up_rule import SlowMultiplication

PROFILE: Profile = draw("""
ProfilerStep#1    0-1000
  cause           100-500
    consequence   200-300
  half            600-800
    cause         600-700
  other           850-950
cause             2000-2100  thread=2
elsewhere         2000-2100  thread=3
""")


def match(name: str, nth: int = 0) -> Match:
    row = row_of(PROFILE, name, nth)
    return Match(anchor=row, events=(row,))


class Late(SlowMultiplication):
    """Yields to two rules."""

    yields_to = ("first", "second")


def left_of_late(*found: Match, by: str = "first") -> tuple[list[Match], dict[str, int]]:
    causes = np.array([row_of(PROFILE, "cause", nth) for nth in range(3)])
    return without_yielded(PROFILE, Late(), found, {by: causes})


@pytest.mark.parametrize("by", ["first", "second"])
def test_what_lies_in_the_time_of_a_rule_that_it_yields_to_is_left_to_that_rule(by: str) -> None:
    assert left_of_late(match("consequence"), by=by) == ([], {by: 1})


def test_half_of_the_time_is_enough() -> None:
    assert left_of_late(match("half")) == ([], {"first": 1})


def test_other_time_stays() -> None:
    other = match("other")
    assert left_of_late(other, match("consequence")) == ([other], {"first": 1})


def test_another_thread_at_the_same_time_stays() -> None:
    elsewhere = match("elsewhere")
    assert left_of_late(elsewhere) == ([elsewhere], {})


def test_a_rule_that_it_does_not_yield_to_takes_nothing() -> None:
    consequence = match("consequence")
    assert left_of_late(consequence, by="stranger") == ([consequence], {})


@pytest.mark.parametrize("theirs", ["aten::mul", "gemm"])
@pytest.mark.parametrize("mine", ["aten::mul", "gemm"])
def test_operators_and_their_kernels_are_the_same_work(mine: str, theirs: str) -> None:
    """Of a chain a rule counts the side that takes longer, which may be the other one for the rule it yields to."""
    profile = draw("aten::mul  0-10  kernel=gemm@20-90\naten::add  12-18  kernel=other@90-99", A100)

    def row(name: str) -> int:
        return next(row for row in range(len(profile.table)) if profile.name(row) == name)

    work = Match(anchor=0, events=(row(mine),))
    assert without_yielded(profile, Late(), [work], {"first": np.array([row(theirs)])}) == ([], {"first": 1})
    assert without_yielded(profile, Late(), [work], {"first": np.array([row("other")])}) == ([work], {})


def test_a_rule_comes_after_all_that_it_yields_to() -> None:
    rules = yielding_last([rule() for rule in all_rules()])
    names = [rule.name() for rule in rules]
    assert set(names) == {rule.name() for rule in all_rules()}
    assert all(names.index(other) < at for at, rule in enumerate(rules) for other in rule.yields_to)


def test_a_rule_yields_to_one_that_is_not_checked() -> None:
    late = Late()
    assert yielding_last([late]) == [late]


def test_rules_whose_events_are_no_cost_neither_yield_nor_are_yielded_to() -> None:
    """Events of the one are a sample, those of the other stay; and the host's pace is told beside its causes."""
    named = {name for rule in all_rules() if rule.yields_to for name in (rule.name(), *rule.yields_to)}
    assert named.isdisjoint({"gpu-idle-host-bound", "grad-graph-never-consumed"})


def test_the_catalogue_yields_to_rules_of_the_catalogue() -> None:
    assert {name for rule in all_rules() for name in rule.yields_to} <= {rule.name() for rule in all_rules()}
