"""float32-beside-bfloat16-units: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rules.precision.float32_beside_bfloat16_units import Float32BesideBfloat16Units
from tests.support.answers import findings, matches_of, reason_not_checked, saving_ns
from tests.support.drawn import A100, Gpu, draw
from tests.support.known import with_settings

LARGE = "dims=512x512,512x512 types=float,float"
CONVOLUTION = (
    "dims=8x64x32x32,64x64x3x3,64,,,,,, "
    "types=float,float,float,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar "
    "scalars=,,,[1x1],[1x1],[1x1],False,[0x0],1"
)


def job(
    given: str = LARGE, name: str = "aten::mm", takes: int = 600, further: str = "", gpu: Gpu | None = None
) -> Profile:
    """A step of 1 ms with one product of 600 µs."""
    kernel = " kernel=gemm@50-600" if gpu else ""
    lines = [
        "ProfilerStep#1 0-1000",
        "  model.py(9): forward 1-999",
        f"    {name} 10-{10 + takes} {given}{kernel}",
        *([f"    aten::mm 700-710 {further}"] if further else []),
    ]
    return draw("\n".join(lines), gpu)


class TestReports:
    @pytest.mark.parametrize(("given", "name"), [(LARGE, "aten::mm"), (CONVOLUTION, "aten::convolution")])
    def test_on_a_cpu_that_is_known_to_multiply_bfloat16(self, given: str, name: str) -> None:
        (finding,) = findings(Float32BesideBfloat16Units, with_settings(job(given, name), processor={"bfloat16": True}))
        assert finding.message == (
            "Products and convolutions in float32 take 600 µs of a step (60 %), and this CPU multiplies bfloat16 faster"
        )
        assert finding.fix.startswith("Use mixed precision")
        assert finding.confidence == "high"

    def test_on_a_cpu_that_is_not_known(self) -> None:
        (finding,) = findings(Float32BesideBfloat16Units, job())
        assert finding.fix.startswith("If `lscpu` shows `avx512_bf16` or `amx_bf16`, use mixed precision")
        assert finding.confidence == "low"

    def test_benchmarks_a_product_of_as_many_operations(self) -> None:
        (match,) = matches_of(Float32BesideBfloat16Units, job())
        pair = Float32BesideBfloat16Units().benchmark(match.evidence)
        assert pair is not None
        assert "torch.randn(512, 512, device=device)" in pair.setup
        for statement in (pair.setup, pair.before, pair.after):
            ast.parse(statement)


class TestSaves:
    @pytest.mark.parametrize(
        ("known", "left", "high_left"), [(True, 0.5, 0.34), (None, 0.6, 0.34)], ids=["known", "not known"]
    )
    def test_what_was_measured(self, known: bool | None, left: float, high_left: float) -> None:
        _, expected, high = saving_ns(Float32BesideBfloat16Units, with_settings(job(), processor={"bfloat16": known}))
        assert (expected, high) == pytest.approx((600_000 * (1 - left), 600_000 * (1 - high_left)), rel=0.01)


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

    def test_for_a_cpu_without_the_instructions(self) -> None:
        profile = with_settings(job(), processor={"bfloat16": False})
        assert "no faster" in reason_not_checked(Float32BesideBfloat16Units, profile)

    def test_for_a_gpu(self) -> None:
        assert "device" in reason_not_checked(Float32BesideBfloat16Units, job(gpu=A100))
