"""Several rules on the same time: the cause speaks."""

from __future__ import annotations

import numpy as np
import pytest

from tb_tidy_plugin.report import ownership
from tb_tidy_plugin.report.ownership import OWNERS, owners_first, without_owned
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rules import all_rules
from tests.support.drawn import A100, draw, row_of

TABLE = OWNERS

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


def left_of_late(*found: Match, by: str = "first") -> tuple[list[Match], dict[str, int]]:
    causes = np.array([row_of(PROFILE, "cause", nth) for nth in range(3)])
    return without_owned(PROFILE, "late", found, {by: causes})


@pytest.mark.parametrize("by", ["first", "second"])
def test_what_lies_in_the_owners_time_is_the_owners(by: str) -> None:
    assert left_of_late(match("consequence"), by=by) == ([], {by: 1})


def test_half_of_the_time_is_enough() -> None:
    assert left_of_late(match("half")) == ([], {"first": 1})


def test_other_time_stays() -> None:
    other = match("other")
    assert left_of_late(other, match("consequence")) == ([other], {"first": 1})


def test_another_thread_at_the_same_time_stays() -> None:
    elsewhere = match("elsewhere")
    assert left_of_late(elsewhere) == ([elsewhere], {})


def test_a_rule_that_is_no_owner_takes_nothing() -> None:
    consequence = match("consequence")
    assert left_of_late(consequence, by="stranger") == ([consequence], {})


@pytest.mark.parametrize("of_owner", ["aten::mul", "gemm"])
@pytest.mark.parametrize("mine", ["aten::mul", "gemm"])
def test_operators_and_their_kernels_are_the_same_work(mine: str, of_owner: str) -> None:
    """Of a chain a rule counts the side that takes longer, which may be the other one for its owner."""
    profile = draw("aten::mul  0-10  kernel=gemm@20-90\naten::add  12-18  kernel=other@90-99", A100)

    def row(name: str) -> int:
        return next(row for row in range(len(profile.table)) if profile.name(row) == name)

    work = Match(anchor=0, events=(row(mine),))
    assert without_owned(profile, "late", [work], {"first": np.array([row(of_owner)])}) == ([], {"first": 1})
    assert without_owned(profile, "late", [work], {"first": np.array([row("other")])}) == ([work], {})


def test_owners_come_before_those_that_give_way_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "OWNERS", TABLE)
    names = [rule.name() for rule in owners_first([rule() for rule in all_rules()])]
    assert len(names) == len(all_rules())
    for rule, owners in TABLE.items():
        assert all(names.index(owner) < names.index(rule) for owner in owners)


def test_rules_whose_events_are_no_cost_are_in_no_column() -> None:
    """Events of the one are a sample, those of the other stay; and the host's pace is told beside its causes."""
    named = {*TABLE, *(owner for owners in TABLE.values() for owner in owners)}
    assert named.isdisjoint({"gpu-idle-host-bound", "grad-graph-never-consumed"})


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
