"""eager-operators-in-compiled-graph: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.eager_operators_in_compiled_graph import EagerOperatorsInCompiledGraph

CALL = "## Call CompiledFxGraph fabc ##"
TURNED = "dims=64x128,64x128 types=c10::complex<float>,c10::complex<float>"
CUSTOM = ("mine::soft_cap 200-500", "  aten::div 210-290", "  aten::tanh 300-390", "  aten::mul 400-490")


def step(*inside: str, call: str = CALL, gpu: Gpu | None = None) -> Profile:
    """A step of 1 ms with one compiled region, whose graph runs `inside`."""
    return draw(
        "\n".join(
            [
                "ProfilerStep#1 0-1000",
                "  Torch-Compiled Region: 0/0 10-900",
                "    model.py(7): forward 11-899",
                f"      {call} 20-890",
                *(f"        {line}" for line in inside),
            ]
        ),
        gpu,
    )


class TestReports:
    def test_arithmetic_with_complex_numbers(self) -> None:
        profile = step(f"aten::mul 100-180 {TURNED}", f"aten::add 200-260 {TURNED}", f"aten::mul 300-390 {TURNED}")
        (finding,) = findings(EagerOperatorsInCompiledGraph, profile)
        assert finding.message == (
            "3 operators run eagerly in the middle of a compiled graph and take 230 µs per call: `mul`, `add`"
        )
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "forward")]
        assert (finding.matches, finding.confidence) == (1, "high")

    def test_the_body_of_a_custom_operator(self) -> None:
        (finding,) = findings(EagerOperatorsInCompiledGraph, step(*CUSTOM))
        assert finding.message == (
            "3 operators in the custom operator `mine::soft_cap` run eagerly in the middle of a compiled graph and "
            "take 260 µs per call: `div`, `tanh`, `mul`"
        )
        assert "Call the code of `mine::soft_cap` without `torch.library.custom_op`" in finding.fix

    def test_two_custom_operators_by_themselves(self) -> None:
        other = ["mine::gate 510-700", "  aten::sigmoid 520-600", "  aten::mul 610-690"]
        assert len(findings(EagerOperatorsInCompiledGraph, step(*CUSTOM, *other))) == 2

    def test_with_medium_confidence_where_no_types_were_recorded(self) -> None:
        (finding,) = findings(EagerOperatorsInCompiledGraph, step("aten::mul 100-180"))
        assert finding.confidence == "medium"
        assert "probably complex" in str(finding.details)

    def test_the_time_of_kernels_where_these_are_slower(self) -> None:
        profile = step(f"aten::mul 100-110 {TURNED} kernel=mul@120-320", gpu=A100)
        (finding,) = findings(EagerOperatorsInCompiledGraph, profile)
        assert finding.cost_ns == 200_000


class TestSaves:
    def test_nine_tenths_of_the_operators(self) -> None:
        # Of 260 µs of operators a tenth is expected to stay.
        assert saving_ns(EagerOperatorsInCompiledGraph, step(*CUSTOM)) == (0, 234_000, 260_000)


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "profile",
        [
            pytest.param(step("aten::mm 100-400 dims=64x64,64x64 types=float,float"), id="products"),
            pytest.param(step("aten::sort 100-400 dims=64 types=float"), id="sorting"),
            pytest.param(step("aten::igamma 100-400 dims=64,64 types=float,float"), id="what Inductor does not know"),
            pytest.param(step("mine::conv 100-400", "  aten::mul 110-390"), id="one operator in a custom one"),
            pytest.param(step("mine::conv 100-400", "  aten::mm 110-240", "  aten::mm 250-390"), id="foreign kernels"),
            pytest.param(step("aten::sub 100-400", "  aten::mul 110-390", call="CompiledFunction"), id="eager backend"),
            pytest.param(step("aten::linear 100-400", "  aten::add 110-390"), id="parts of other operators"),
            pytest.param(draw("model.py(7): forward 0-99\n  aten::mul 10-90"), id="eager code"),
        ],
    )
    def test_for(self, profile: Profile) -> None:
        assert matches_of(EagerOperatorsInCompiledGraph, profile) == ()
