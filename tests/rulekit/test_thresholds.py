"""Thresholds: numbers with a reason that read as the number, the user's where one is set."""

from __future__ import annotations

from tb_tidy_plugin.rulekit import Threshold
from tb_tidy_plugin.rulekit.thresholds import thresholds_of
from tests.support.made_up_rule import SlowMultiplication


class Picky(SlowMultiplication):
    min_bytes = Threshold(4096, "smaller ones are cheap")


class Coarse(SlowMultiplication):
    min_share = Threshold(0.05, "it is a coarse rule")


def test_a_rule_reads_the_default() -> None:
    assert Picky().min_bytes == 4096
    assert Picky().min_share == 0.005


def test_a_setting_counts_for_that_rule_alone() -> None:
    assert Picky({"min_bytes": 1.0}).min_bytes == 1
    assert Picky().min_bytes == 4096


def test_the_class_knows_the_reason() -> None:
    assert Picky.min_bytes.reason == "smaller ones are cheap"


def test_all_thresholds_of_a_rule_its_own_first() -> None:
    assert list(thresholds_of(Picky)) == ["min_bytes", "min_share"]
    assert thresholds_of(Coarse)["min_share"].default == 0.05
