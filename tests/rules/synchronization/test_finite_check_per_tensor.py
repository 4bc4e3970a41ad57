"""finite-check-per-tensor: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.synchronization.finite_check_per_tensor import FiniteCheckPerTensor

NAN = ("isnan", "any", "is_nonzero")
FINITE = ("isfinite", "all", "bitwise_not", "is_nonzero")


def job(checks: int = 8, names: Sequence[str] = NAN, function: str = "train.py(30): guard") -> Profile:
    """One step; each operator takes 5 µs."""
    lines = ["ProfilerStep#1 0-4000", f"  {function} 1-3999"]
    for number in range(checks):
        for position, name in enumerate(names):
            at = 10 + 100 * number + 10 * position
            lines.append(f"    aten::{name} {at}-{at + 5} dims=32x32 types=float")
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize(("names", "time"), [(NAN, "120 µs"), (FINITE, "160 µs")])
    def test_each_kind_of_check(self, names: Sequence[str], time: str) -> None:
        (finding,) = findings(FiniteCheckPerTensor, job(names=names))
        assert finding.message == (
            f"Python checks 8 tensors per step for NaN or infinity one by one, which takes {time}"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "guard")]
        assert finding.matches == 8


class TestSaves:
    def test_two_thirds(self) -> None:
        low, expected, high = saving_ns(FiniteCheckPerTensor, job(checks=10))
        assert (low, high) == (0, 150_000)
        assert expected == pytest.approx(150_000 * 0.67, rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(checks=7), id="fewer checks"),
            pytest.param(job(names=NAN[:2]), id="results that stay tensors"),
            pytest.param(job(names=("isnan", "mul", "item")), id="other uses"),
            pytest.param(job(function="torch/optim/adam.py(9): step"), id="a library's checks"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(FiniteCheckPerTensor, profile) == ()
