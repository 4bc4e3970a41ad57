"""moving-average-per-parameter: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rules.optimizer.moving_average_per_parameter import MovingAveragePerParameter
from tests.support.answers import findings, matches_of, saving_ns
from tests.support.drawn import draw


def job(
    parameters: int = 8,
    both: bool = True,
    function: str = "sac.py(70): soft_update",
    dtype: str = "float",
    other: str = "64x64",
    around: str = "## part",
) -> Profile:
    """One step; each operator takes 5 µs."""
    lines = ["ProfilerStep#1 0-4000", f"  {around} 1-3999", f"    {function} 2-3998"]
    for number in range(parameters):
        at = 10 + 20 * number
        if both:
            lines += [
                f"      aten::mul_ {at}-{at + 5} dims=64x64, types={dtype},double",
                f"      aten::add_ {at + 10}-{at + 15} dims=64x64,{other}, types={dtype},{dtype},Scalar",
            ]
        else:
            lines += [f"      aten::lerp_ {at}-{at + 5} dims=64x64,{other}, types={dtype},{dtype},Scalar"]
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize(("both", "said"), [(True, "`mul_` and `add_`, which takes 80 µs"), (False, "`lerp_`")])
    def test_each_way_to_average(self, both: bool, said: str) -> None:
        (finding,) = findings(MovingAveragePerParameter, job(both=both))
        assert finding.message.startswith(f"A loop averages 8 tensors one at a time with {said}")
        assert [(place.file, place.function) for place in finding.places] == [("sac.py", "soft_update")]


class TestSaves:
    @pytest.mark.parametrize(("both", "time_ns", "left"), [(True, 80_000, 0.25), (False, 40_000, 0.45)])
    def test_what_one_call_for_all_takes_less(self, both: bool, time_ns: int, left: float) -> None:
        _, expected, _ = saving_ns(MovingAveragePerParameter, job(both=both))
        assert expected == pytest.approx(time_ns * (1 - left), rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(parameters=7), id="fewer"),
            pytest.param(job(dtype="long"), id="integers"),
            pytest.param(job(other="64x1"), id="a sum of something else"),
            pytest.param(job(around="Optimizer.step#Mine.step"), id="an optimizer"),
            pytest.param(job(function="torch/optim/swa_utils.py(9): update"), id="a library"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(MovingAveragePerParameter, profile) == ()
