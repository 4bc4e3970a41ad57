"""moving-average-per-parameter: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.optimizer.moving_average_per_parameter import MovingAveragePerParameter


def job(
    parameters: int = 8,
    way: str = "mul_",
    function: str = "sac.py(70): soft_update",
    dtype: str = "float",
    other: str = "64x64",
    around: str = "## part",
) -> Profile:
    """One step; each operator takes 5 µs, or 4 µs where four run for each parameter."""
    lines = ["ProfilerStep#1 0-4000", f"  {around} 1-3999", f"    {function} 2-3998"]
    for number in range(parameters):
        at = 10 + 20 * number
        if way == "mul_":
            lines += [
                f"      aten::mul_ {at}-{at + 5} dims=64x64, types={dtype},double",
                f"      aten::add_ {at + 10}-{at + 15} dims=64x64,{other}, types={dtype},{dtype},Scalar",
            ]
        elif way == "copy_":
            lines += [
                f"      aten::mul {at}-{at + 4} dims=64x64, types={dtype},double",
                f"      aten::mul {at + 5}-{at + 9} dims=64x64, types={dtype},double",
                f"      aten::add {at + 10}-{at + 14} dims=64x64,{other}, types={dtype},{dtype},Scalar",
                f"      aten::copy_ {at + 15}-{at + 19} dims=64x64,{other}, types={dtype},{dtype},",
            ]
        else:
            lines += [f"      aten::lerp_ {at}-{at + 5} dims=64x64,{other}, types={dtype},{dtype},Scalar"]
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize(
        ("way", "said"),
        [
            ("mul_", "`mul_` and `add_`, which takes 80 µs"),
            ("lerp_", "`lerp_`"),
            ("copy_", "two products, a sum and `copy_`, which takes 128 µs"),
        ],
    )
    def test_each_way_to_average(self, way: str, said: str) -> None:
        (finding,) = findings(MovingAveragePerParameter, job(way=way))
        assert finding.message.startswith(f"A loop averages 8 tensors one at a time with {said}")
        assert [(place.file, place.function) for place in finding.places] == [("sac.py", "soft_update")]


class TestSaves:
    @pytest.mark.parametrize(
        ("way", "time_ns", "left"), [("mul_", 80_000, 0.25), ("lerp_", 40_000, 0.45), ("copy_", 128_000, 0.09)]
    )
    def test_what_one_call_for_all_takes_less(self, way: str, time_ns: int, left: float) -> None:
        _, expected, _ = saving_ns(MovingAveragePerParameter, job(way=way))
        assert expected == pytest.approx(time_ns * (1 - left), rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(parameters=7), id="fewer"),
            pytest.param(job(dtype="long"), id="integers"),
            pytest.param(job(other="64x1"), id="a sum of something else"),
            pytest.param(job(way="copy_", other="64x1"), id="a copy of something else"),
            pytest.param(job(around="Optimizer.step#Mine.step"), id="an optimizer"),
            pytest.param(job(function="torch/optim/swa_utils.py(9): update"), id="a library"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(MovingAveragePerParameter, profile) == ()
