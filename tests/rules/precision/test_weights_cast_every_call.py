"""weights-cast-every-call: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.precision.weights_cast_every_call import WeightsCastEveryCall


def job(
    layers: int = 4, weight: str = "float", cast: str = "128x64", number: str = "15", backward: bool = False
) -> Profile:
    """A step of 1 ms; each layer casts its bias for 5 µs, then its weight for 20 µs."""
    lines = ["ProfilerStep#1 0-1000", "  serve.py(4): generate 1-999"]
    for layer in range(layers):
        at = 10 + 100 * layer
        given = f"types=float,Scalar,Scalar,Scalar, scalars=,{number},False,False,"
        lines += [
            f"    aten::linear {at}-{at + 90} dims=4x64,128x64,128 types=float,{weight},{weight}",
            f"      aten::to {at + 5}-{at + 10} dims=128,,,, {given}",
            f"      aten::to {at + 20}-{at + 40} dims={cast},,,, {given}",
        ]
    lines += ["    autograd::engine::evaluate_function: MulBackward0 900-950"] if backward else []
    return draw("\n".join(lines))


class TestReports:
    @pytest.mark.parametrize(("number", "dtype"), [("15", "bfloat16"), ("5", "float16")])
    def test_casts_of_weights_but_not_of_biases(self, number: str, dtype: str) -> None:
        (finding,) = findings(WeightsCastEveryCall, job(number=number))
        assert finding.message == f"Autocast casts 4 weights to {dtype} per step, which takes 80 µs"
        assert finding.fix == f"Cast the model once: `model.to(torch.{dtype})`"
        assert [place.function for place in finding.places] == ["generate"]


class TestSaves:
    def test_the_casts(self) -> None:
        assert saving_ns(WeightsCastEveryCall, job(layers=6)) == (0, 120_000, 120_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(layers=3), id="fewer"),
            pytest.param(job(weight="bfloat16"), id="weights in half precision"),
            pytest.param(job(cast="4x64"), id="casts of inputs"),
            pytest.param(job(number="7"), id="casts to float64"),
            pytest.param(job(backward=True), id="training"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(WeightsCastEveryCall, profile) == ()
