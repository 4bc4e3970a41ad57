"""cache-emptied-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.memory.cache_emptied_in_step import CacheEmptiedInStep

EMPTY = "torch/cuda/memory.py(210): empty_cache"


def job(emptying: int = 2, frame: str = EMPTY) -> Profile:
    """Four steps of 1 ms, of which the first ones empty the cache for 300 µs, twice each."""
    lines = []
    for number in range(4):
        at = 1000 * number
        lines += [f"ProfilerStep#{number} {at}-{at + 990}", f"  train.py(4): train {at + 1}-{at + 989}"]
        if number < emptying:
            lines += [f"    {frame} {at + 100}-{at + 400}", f"    {frame} {at + 500}-{at + 600}"]
    return draw("\n".join(lines))


class TestReports:
    def test_calls_in_half_of_the_steps(self) -> None:
        (finding,) = findings(CacheEmptiedInStep, job())
        assert finding.message == "`empty_cache()` runs in the steps and takes 200 µs per step"
        assert [place.function for place in finding.places] == ["train"]


class TestSaves:
    def test_the_calls(self) -> None:
        assert saving_ns(CacheEmptiedInStep, job()) == (0, 200_000, 200_000)


class TestStaysQuiet:
    def test_for_fewer(self) -> None:
        assert matches_of(CacheEmptiedInStep, job(emptying=1)) == ()

    def test_for_a_function_of_the_users_own(self) -> None:
        assert matches_of(CacheEmptiedInStep, job(frame="cache.py(3): empty_cache")) == ()
