"""Several rules on the same time: the cause speaks."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.report import ownership
from tb_tidy_plugin.report.ownership import OWNERS, without_owned
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rules import all_rules
from tests.support.drawn import draw, row_of

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


@pytest.fixture(autouse=True)
def owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "OWNERS", {"late": ("first", "second")})


def left_of_late(*found: Match, by: str = "first") -> tuple[list[Match], dict[str, dict[str, int]]]:
    causes = [match("cause", nth) for nth in range(3)]
    left, owned = without_owned(PROFILE, {"late": found, by: causes})
    assert left[by] == causes
    return left["late"], owned


@pytest.mark.parametrize("by", ["first", "second"])
def test_what_lies_in_the_owners_time_is_the_owners(by: str) -> None:
    assert left_of_late(match("consequence"), by=by) == ([], {"late": {by: 1}})


def test_half_of_the_time_is_enough() -> None:
    assert left_of_late(match("half")) == ([], {"late": {"first": 1}})


def test_other_time_stays() -> None:
    other = match("other")
    assert left_of_late(other, match("consequence")) == ([other], {"late": {"first": 1}})


def test_another_thread_at_the_same_time_stays() -> None:
    elsewhere = match("elsewhere")
    assert left_of_late(elsewhere) == ([elsewhere], {})


def test_a_rule_that_is_no_owner_takes_nothing() -> None:
    consequence = match("consequence")
    assert left_of_late(consequence, by="stranger") == ([consequence], {})


def test_the_table_names_rules_and_goes_in_no_circle() -> None:
    known = {rule.name() for rule in all_rules()}
    assert set(OWNERS) | {owner for owners in OWNERS.values() for owner in owners} <= known
    done: set[str] = set()
    waiting = dict(OWNERS)
    while waiting:
        ready = {rule for rule, owners in waiting.items() if not set(owners) & set(waiting)}
        assert ready, f"these give way to one another: {sorted(waiting)}"
        done |= ready
        waiting = {rule: owners for rule, owners in waiting.items() if rule not in ready}
