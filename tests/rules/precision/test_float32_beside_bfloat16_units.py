"""float32-beside-bfloat16-units: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.precision.float32_beside_bfloat16_units import Float32BesideBfloat16Units
from tests.support.known import with_settings

LARGE = "dims=512x512,512x512 types=float,float"
CONVOLUTION = (
    "dims=8x64x32x32,64x64x3x3,64,,,,,, "
    "types=float,float,float,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar "
    "scalars=,,,[1x1],[1x1],[1x1],False,[0x0],1"
)


def job(
    given: str = LARGE,
    name: str = "aten::mm",
    takes: int = 600,
    further: str = "",
    gpu: Gpu | None = None,
    bfloat16: bool | None = True,
) -> Profile:
    """A step of 1 ms with one product of 600 µs."""
    kernel = " kernel=gemm@50-600" if gpu else ""
    lines = [
        "ProfilerStep#1 0-1000",
        "  model.py(9): forward 1-999",
        f"    {name} 10-{10 + takes} {given}{kernel}",
        *([f"    aten::mm 700-710 {further}"] if further else []),
    ]
    return with_settings(draw("\n".join(lines), gpu), processor={"bfloat16": bfloat16})


class TestReports:
    @pytest.mark.parametrize(("given", "name"), [(LARGE, "aten::mm"), (CONVOLUTION, "aten::convolution")])
    def test_large_products_and_convolutions(self, given: str, name: str) -> None:
        (finding,) = findings(Float32BesideBfloat16Units, job(given, name))
        assert finding.message == (
            "Products and convolutions in float32 take 600 µs of a step (60 %), and this CPU multiplies bfloat16 faster"
        )
        assert finding.fix.startswith("Use mixed precision")

    def test_benchmarks_a_product_of_as_many_operations(self) -> None:
        (match,) = matches_of(Float32BesideBfloat16Units, job())
        pair = Float32BesideBfloat16Units().benchmark(match.evidence)
        assert pair is not None
        assert "torch.randn(512, 512, device=device)" in pair.setup
        for statement in (pair.setup, pair.before, pair.after):
            ast.parse(statement)


class TestSaves:
    def test_what_was_measured(self) -> None:
        low, expected, high = saving_ns(Float32BesideBfloat16Units, job())
        assert (low, expected, high) == pytest.approx((0, 300_000, 396_000), rel=0.01)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job("dims=128x512,512x128 types=float,float"), id="small products"),
            pytest.param(job("dims=32x2048,2048x2048 types=float,float"), id="few rows"),
            pytest.param(job("dims=512x512,512x512 types=double,double"), id="another precision"),
            pytest.param(job(takes=300), id="a small part of the step"),
            pytest.param(job(further="dims=8x8,8x8 types=bfloat16,bfloat16"), id="half precision in use"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(Float32BesideBfloat16Units, profile) == ()

    @pytest.mark.parametrize(
        ("bfloat16", "reason"), [(False, "not multiply bfloat16 faster"), (None, "if `lscpu` shows `avx512_bf16`")]
    )
    def test_for_a_cpu_without_the_instructions(self, bfloat16: bool | None, reason: str) -> None:
        assert reason in reason_not_checked(Float32BesideBfloat16Units, job(bfloat16=bfloat16))

    def test_for_a_gpu(self) -> None:
        assert "device" in reason_not_checked(Float32BesideBfloat16Units, job(gpu=A100))
