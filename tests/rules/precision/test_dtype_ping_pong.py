"""dtype-ping-pong: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import A100, Gpu, draw
from tb_tidy_plugin.rules.precision.dtype_ping_pong import DtypePingPong

SIZE = "64x512"


def cast(
    source: str, target: str, at: int, size: str = SIZE, name: str = "to", more: str = "", indent: str = ""
) -> str:
    """A cast of 90 µs, as torch runs it."""
    lines = [
        f"aten::{name} {at}-{at + 90} dims={size} types={source} {more}",
        f"  aten::_to_copy {at + 5}-{at + 85} dims={size} types={source} {more}",
        f"    aten::copy_ {at + 10}-{at + 80} dims={size},{size} types={target},{source}",
    ]
    return "\n".join(f"    {indent}{line}" for line in lines)


def call(name: str, at: int, dtype: str = "bfloat16", size: str = SIZE) -> str:
    return f"    aten::{name} {at}-{at + 90} dims={size} types={dtype}"


def step(*lines: str, gpu: Gpu | None = None) -> Profile:
    return draw("\n".join(["ProfilerStep#1 0-10000", "  model.py(3): forward 1-9999", *lines]), gpu)


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(DtypePingPong, profile)


THERE, BACK = cast("bfloat16", "float", 100), cast("float", "bfloat16", 900)
DOWN, UP = cast("float", "half", 100), cast("half", "float", 900)


class TestReports:
    def test_a_cast_to_more_bits_and_straight_back(self) -> None:
        (finding,) = findings(DtypePingPong, step(THERE, BACK))
        assert finding.message == (
            "64×512 values are cast from bfloat16 to float32 and straight back to bfloat16: 180 µs"
        )
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "forward")]
        assert finding.confidence == "high"

    def test_something_in_between_that_does_not_need_the_bits(self) -> None:
        (finding,) = findings(DtypePingPong, step(THERE, call("relu", 300, "float"), BACK))
        assert "2 operators later back" in finding.message
        assert finding.confidence == "medium"
        assert "between them only `relu` runs" in str(finding.details[0])

    def test_arithmetic_in_fewer_bits_that_is_worth_no_cast(self) -> None:
        assert [match.confidence for match in matches(step(DOWN, call("add", 300, "half"), UP))] == ["medium"]

    def test_views_in_between(self) -> None:
        assert [match.confidence for match in matches(step(THERE, call("view", 300), BACK))] == ["high"]

    def test_a_cast_back_that_autocast_makes(self) -> None:
        inner = cast("float", "bfloat16", 910, indent="  ")
        assert len(matches(step(THERE, "    aten::linear 900-1200", inner))) == 1

    def test_the_other_ways_to_cast(self) -> None:
        assert len(matches(step(cast("bfloat16", "float", 100, name="type_as"), BACK))) == 1

    def test_all_of_a_function_are_one_finding(self) -> None:
        more = cast("bfloat16", "float", 2000), cast("float", "bfloat16", 2100)
        (finding,) = findings(DtypePingPong, step(THERE, BACK, call("mm", 1500), *more))
        assert finding.matches == 2

    def test_each_cast_counts_once(self) -> None:
        (match,) = matches(step(THERE, BACK, cast("bfloat16", "float", 1500)))
        assert len(match.events) == 2


class TestSaves:
    def test_both_casts(self) -> None:
        assert saving_ns(DtypePingPong, step(THERE, BACK)) == (0, 180_000, 180_000)

    def test_their_gradients_too(self) -> None:
        lines = [cast("bfloat16", "float", 100, more="seq=4"), cast("float", "bfloat16", 900, more="seq=5")]
        node = "    autograd::engine::evaluate_function: ToCopyBackward0"
        lines += [f"{node} 5000-5100 seq=5 fwd=1", f"{node} 5200-5300 seq=4 fwd=1"]
        lines += ["    autograd::engine::evaluate_function: AddmmBackward0 5400-5900 seq=5 fwd=1"]
        assert saving_ns(DtypePingPong, step(*lines)) == (0, 380_000, 380_000)

    def test_their_kernels_where_these_take_longer(self) -> None:
        there, back = THERE.splitlines(), BACK.splitlines()
        there[2] += " kernel=unrolled_elementwise_kernel@200-500"
        back[2] += " kernel=unrolled_elementwise_kernel@1000-1300"
        assert saving_ns(DtypePingPong, step(*there, *back, gpu=A100)) == (0, 600_000, 600_000)

    def test_a_benchmark_of_the_same_tensor(self) -> None:
        (match,) = matches(step(THERE, BACK))
        benchmark = DtypePingPong().benchmark(match.evidence)
        assert benchmark is not None
        assert benchmark.before == "result = torch.relu(torch.relu(x).to(torch.float32).to(torch.bfloat16))"
        assert "torch.randn((64, 512), dtype=torch.bfloat16, device=device)" in benchmark.setup
        ast.parse(benchmark.setup)


class TestStaysQuiet:
    @pytest.mark.parametrize("name", ["softmax", "layer_norm", "cross_entropy_loss", "sum", "pow", "mul", "exp"])
    def test_float32_with_a_reason(self, name: str) -> None:
        assert matches(step(THERE, call(name, 300, "float"), BACK)) == ()

    @pytest.mark.parametrize("name", ["linear", "conv2d", "scaled_dot_product_attention", "matmul"])
    def test_half_precision_with_a_reason(self, name: str) -> None:
        assert matches(step(DOWN, call(name, 300, "half"), UP)) == ()

    def test_a_norm_that_autocast_casts_for(self) -> None:
        inner = cast("bfloat16", "float", 110, indent="  ")
        assert matches(step("    aten::layer_norm 100-300", inner, BACK)) == ()

    def test_two_casts_that_one_operator_makes(self) -> None:
        inner = [cast("bfloat16", "float", 110, indent="  "), cast("float", "bfloat16", 210, indent="  ")]
        assert matches(step("    aten::linear 100-400", *inner)) == ()

    def test_a_weight_of_another_size(self) -> None:
        assert matches(step(THERE, cast("float", "bfloat16", 900, size="512x512"))) == ()

    def test_a_cast_to_a_third_dtype(self) -> None:
        assert matches(step(THERE, cast("float", "half", 900))) == ()

    def test_casts_of_whole_numbers(self) -> None:
        assert matches(step(cast("long", "int", 100), cast("int", "long", 900))) == ()

    def test_a_call_that_changes_nothing(self) -> None:
        assert matches(step(call("to", 100, "float"), call("to", 300, "bfloat16"))) == ()

    def test_a_small_tensor(self) -> None:
        small = cast("bfloat16", "float", 100, "1023"), cast("float", "bfloat16", 900, "1023")
        assert matches(step(*small)) == ()
        assert len(matches_of(DtypePingPong({"min_bytes": 4092}), step(*small))) == 1

    def test_a_cast_back_far_away(self) -> None:
        between = [call("relu", at, "float") for at in range(200, 800, 100)]
        assert matches(step(THERE, *between, BACK)) == ()
        assert len(matches_of(DtypePingPong({"max_operators": 6}), step(THERE, *between, BACK))) == 1

    def test_what_the_backward_pass_casts(self) -> None:
        node = "    autograd::engine::evaluate_function: {} seq={} fwd=1"
        lines = [
            node.format("ToCopyBackward0 100-300", 5), cast("bfloat16", "float", 110, indent="  "),
            node.format("ToCopyBackward0 400-600", 4), cast("float", "bfloat16", 410, indent="  "),
        ]  # fmt: skip
        assert matches(step(*lines)) == ()

    def test_a_copy_into_a_tensor_that_is_there(self) -> None:
        copies = [
            f"    aten::copy_ 100-190 dims={SIZE},{SIZE} types=float,bfloat16",
            f"    aten::copy_ 300-390 dims={SIZE},{SIZE} types=bfloat16,float",
        ]
        assert matches(step(*copies)) == ()
