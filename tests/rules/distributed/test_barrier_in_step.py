"""barrier-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.distributed.barrier_in_step import BarrierInStep

BARRIER = "torch/distributed/distributed_c10d.py(4600): barrier"


def job(waiting: int = 2, frame: str = BARRIER, took_us: int = 200) -> Profile:
    """Four steps of 1 ms, of which the first ones wait."""
    lines = []
    for number in range(4):
        at = 1000 * number
        lines += [f"ProfilerStep#{number} {at}-{at + 990}", f"  train.py(4): train {at + 1}-{at + 989}"]
        lines += [f"    {frame} {at + 100}-{at + 100 + took_us}"] if number < waiting else []
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize("frame", [BARRIER, BARRIER.replace("barrier", "monitored_barrier")])
    def test_barriers_in_half_of_the_steps(self, frame: str) -> None:
        (finding,) = findings(BarrierInStep, job(frame=frame))
        assert "0.5 times per step, for 100 µs" in finding.message
        assert [place.function for place in finding.places] == ["train"]


class TestSaves:
    def test_half_of_it_since_ranks_wait_in_the_next_collective(self) -> None:
        assert saving_ns(BarrierInStep, job(waiting=4)) == (0, 100_000, 200_000)


class TestStaysQuiet:
    def test_for_fewer(self) -> None:
        assert matches_of(BarrierInStep, job(waiting=1)) == ()

    def test_for_ranks_that_are_there(self) -> None:
        assert matches_of(BarrierInStep, job(waiting=4, took_us=49)) == ()

    def test_for_a_function_of_the_users_own(self) -> None:
        assert matches_of(BarrierInStep, job(waiting=4, frame="locks.py(4): barrier")) == ()
