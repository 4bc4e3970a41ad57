"""garbage-collected-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Category, Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.settings.garbage_collected_in_step import GarbageCollectedInStep

EXPLICIT = ["    <built-in function collect> 100-410", "      Python GC 105-405"]
AUTOMATIC = ["    Python GC 500-700"]


def job(*collections: str, step: str = "ProfilerStep#1") -> Profile:
    """A step of 1 ms with these collections, which torch records as Python functions."""
    drawn = draw("\n".join([f"{step} 0-1000", "  train.py(4): train 1-999", *collections]))
    table = drawn.table
    is_gc = np.isin(table.name, [number for number, name in enumerate(table.names) if name == "Python GC"])
    return Profile(replace(table, category=np.where(is_gc, Category.PYTHON, table.category).astype(np.uint8)))


class TestReports:
    def test_explicit_and_automatic_ones_apart(self) -> None:
        explicit, automatic = findings(GarbageCollectedInStep, job(*EXPLICIT, *AUTOMATIC))
        assert explicit.message == "`gc.collect()` collects garbage in the steps, which takes 300 µs per step"
        assert explicit.fix.startswith("Remove `gc.collect()` from the step")
        assert automatic.message.startswith("Python collects garbage")
        assert automatic.fix.startswith("Call `gc.collect(); gc.freeze()` once before the first step")
        assert {place.function for finding in (explicit, automatic) for place in finding.places} == {"train"}


class TestSaves:
    def test_all_of_an_explicit_one(self) -> None:
        assert saving_ns(GarbageCollectedInStep, job(*EXPLICIT)) == (0, 300_000, 300_000)

    def test_nine_tenths_of_an_automatic_one(self) -> None:
        assert saving_ns(GarbageCollectedInStep, job(*AUTOMATIC)) == (0, 180_000, 200_000)


class TestStaysQuiet:
    def test_outside_of_steps(self) -> None:
        assert matches_of(GarbageCollectedInStep, job(*AUTOMATIC, step="## part")) == ()

    def test_for_less_than_a_hundredth_of_the_steps(self) -> None:
        assert GarbageCollectedInStep.min_share.default == 0.01
