"""kernel-built-in-step: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import re

import pytest

from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.profile.compiled.compilations import BUILDERS, Builder
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.kernel_built_in_step import FIX_OF_BUILDER, KernelBuiltInStep
from tb_tidy_plugin.words.causes import Cause

COMPILE = "triton/compiler/compiler.py(226): compile"
FRAMES: dict[Builder, str] = {
    "Triton": COMPILE,
    "Triton's autotuner": "triton/runtime/autotuner.py(150): _bench",
    "TorchScript": "torch/jit/_script.py(1273): script",
    "NVRTC": "torch/cuda/_utils.py(183): _nvrtc_compile",
    "Numba": "numba/core/dispatcher.py(360): _compile_for_args",
    "a C++ extension": "torch/utils/cpp_extension.py(2302): _jit_compile",
}


def step(number: int, built: str, around: str = "triton/runtime/jit.py(709): run") -> str:
    """A step of 990 µs, of which `built` takes 400, called by `gate` at line 5."""
    at = number * 1000
    inside = [f"      {built} {at + 110}-{at + 510}", f"        {built} {at + 120}-{at + 500}"] if built else []
    return "\n".join(
        [
            f"ProfilerStep#{number + 3} {at}-{at + 990}",
            f"  model.py(5): gate {at + 90}-{at + 600}",
            f"    {around} {at + 100}-{at + 590}",
            *inside,
            f"      aten::mm {at + 550}-{at + 580} kernel=mm@{at + 560}-{at + 900}",
        ]
    )


def job(*built: str, around: str = "triton/runtime/jit.py(709): run") -> Profile:
    return draw("\n".join(step(number, each, around) for number, each in enumerate(built)), A100)


class TestReports:
    def test_each_builder_where_it_is_called(self) -> None:
        for builder, frame in FRAMES.items():
            (finding,) = findings(KernelBuiltInStep, job(*[frame] * 5))
            what = builder[:1].upper() + builder[1:]
            assert finding.message == f"{what} builds code 5 times inside steps, which takes 2 ms"
            assert finding.fix.rstrip(".") == FIX_OF_BUILDER[builder]
            assert [(place.file, place.function) for place in finding.places] == [("model.py", "gate")]

    def test_every_builder_is_drawn(self) -> None:
        assert FRAMES.keys() == BUILDERS.keys() == FIX_OF_BUILDER.keys()
        assert all(re.search(BUILDERS[builder], frame) for builder, frame in FRAMES.items())

    def test_the_ledger_calls_it_compilation(self) -> None:
        causes = {entry.cause for entry in account_of(job(*[COMPILE] * 5)).ledger.entries}
        assert Cause.COMPILATION in causes


class TestSaves:
    def test_all_builds_where_they_go_on_after_the_warm_up(self) -> None:
        # Builds of 400 µs in each step, of whose second half the device computes.
        assert saving_ns(KernelBuiltInStep, job(*[COMPILE] * 5)) == (0, 400_000, 400_000)

    def test_none_of_the_warm_up_where_they_become_fewer(self) -> None:
        # Two builds of 400 µs after the warm-up, in five steps.
        assert saving_ns(KernelBuiltInStep, job(COMPILE, COMPILE, COMPILE, COMPILE, "")) == (0, 160_000, 160_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(job(COMPILE, COMPILE, "", "", ""), id="warm-up"),
            pytest.param(job("", "", "", COMPILE, ""), id="one last, smaller batch"),
            pytest.param(job(*[""] * 5), id="kernels that are built"),
            pytest.param(job(*["model.py(9): compile"] * 5), id="the user's own compile"),
            pytest.param(job(*[COMPILE] * 5, around="entire_frame_compile"), id="what torch.compile builds"),
            pytest.param(draw(f"model.py(5): gate 0-99\n  {COMPILE} 10-90", A100), id="no steps"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(KernelBuiltInStep, profile) == ()
