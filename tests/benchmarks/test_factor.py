"""When a measurement is part of a saving, and what it does to the edits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.benchmarks.factor import Factor, factor_of
from tb_tidy_plugin.rulekit import Edit, Overlap, Remove, Scale, Unblock
from tests.support.measurements import A100, PAIR, THIS_CPU, measurement


def test_the_ratio_is_what_is_left_of_the_events() -> None:
    assert factor_of(measurement(on=A100), PAIR, "cuda") == Factor(0.5, 0.4, 0.6)


def test_a_fix_that_is_slower_saves_nothing_rather_than_less_than_nothing() -> None:
    assert factor_of(measurement(ratio=(1.2, 0.9, 1.5)), PAIR, "cpu") == Factor(1.0, 0.9, 1.0)


@pytest.mark.parametrize("kind", ["cpu", "rocm", "other"])
def test_not_from_another_kind_of_device(kind: str) -> None:
    assert factor_of(measurement(on=A100), PAIR, kind) is None


def test_not_from_one_that_is_not_trusted() -> None:
    assert factor_of(measurement(doubts=("It swings.",)), PAIR, "cpu") is None


def test_not_where_the_statements_do_more_than_the_events() -> None:
    assert factor_of(measurement(on=THIS_CPU), replace(PAIR, of_events=False), "cpu") is None


def test_nothing_measured() -> None:
    assert factor_of(None, PAIR, "cpu") is None
    assert factor_of(measurement(), None, "cpu") is None


def test_it_takes_the_place_of_what_the_rule_reckoned() -> None:
    edits: list[Edit] = [Remove((1, 2)), Scale((3,), 0.9, 0.8, 1.0), Unblock(4), Overlap((5,))]
    assert Factor(0.5, 0.4, 0.6).applied(edits) == [
        Scale((1, 2), 0.5, 0.4, 0.6), Scale((3,), 0.5, 0.4, 0.6), Unblock(4), Overlap((5,)),
    ]  # fmt: skip
