"""device-synchronized-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.synchronization.device_synchronized_in_step import DeviceSynchronizedInStep

WAIT = "torch/cuda/__init__.py(1085): synchronize"


def job(
    waiting: int = 2, frame: str = WAIT, caller: str = "train.py(7): measured", until: int = 700, steps: int = 4
) -> Profile:
    """Steps of 1 ms; each launches 390 µs of work, waits until it is done, and launches 200 µs more."""
    lines = []
    for number in range(steps):
        at = 1000 * number
        lines += [f"ProfilerStep#{number} {at}-{at + 990}", f"  {caller} {at + 1}-{at + 989}"]
        lines += [f"    aten::mm {at + 10}-{at + 20} kernel=gemm@{at + 310}-{at + 700}"]
        if number < waiting:
            wait = f"wait={at + 101}-{at + until - 1}"
            lines += [f"    {frame} {at + 100}-{at + until} {wait}"]
        lines += [f"    aten::relu {at + 740}-{at + 750} kernel=relu@{at + 750}-{at + 950}"]
    return draw("\n".join(lines), A100)


class TestReports:
    def test_waits_in_half_of_the_steps(self) -> None:
        (finding,) = findings(DeviceSynchronizedInStep, job())
        assert finding.message == "`synchronize()` makes the host wait for the device 0.5 times per step, for 300 µs"
        assert [place.function for place in finding.places] == ["measured"]


class TestSaves:
    def test_no_more_than_the_waits(self) -> None:
        low, expected, high = saving_ns(DeviceSynchronizedInStep, job(waiting=4))
        assert 0 == low <= expected <= high == 600_000


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(waiting=1), id="a quarter of the steps"),
            pytest.param(job(waiting=4, until=140), id="short waits"),
            pytest.param(job(waiting=1, steps=1), id="one step"),
            pytest.param(job(frame="timer.py(3): synchronize"), id="a function of the user's own"),
            pytest.param(job(caller="torch/profiler/profiler.py(9): step"), id="the profiler's own"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(DeviceSynchronizedInStep, profile) == ()
