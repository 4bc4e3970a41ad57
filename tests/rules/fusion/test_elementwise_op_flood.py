"""elementwise-op-flood: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.analysis.findings import groups_of, worth_reporting
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing.answers import findings, matches_of, saving_ns
from tb_tidy_plugin.rulekit.testing.drawn import A100, Gpu, draw
from tb_tidy_plugin.rules.fusion.elementwise_op_flood import ElementwiseOpFlood
from tb_tidy_plugin.rules.fusion.unfused_attention import UnfusedAttention

LARGE = "512x1024"  # 2 MiB of float
SMALL = "64x64"
MISH = ["abs", "neg", "exp", "log1p", "clamp", "add 2", "tanh", "mul 2"]
SCALED = ["mul", "add", "mul 2", "sub", "mul 2", "add", "clamp", "mul 2"]


def operator(name: str, start: int, end: int, size: str = LARGE, more: str = "") -> str:
    """`name` with one tensor, or with as many as follow the name."""
    plain, _, count = name.partition(" ")
    tensors = int(count or 1)
    dims, dtypes = ",".join([size] * tensors), ",".join(["float"] * tensors)
    return f"aten::{plain}  {start}-{end}  dims={dims}  types={dtypes}  {more}"


def chain(names: Iterable[str], size: str = LARGE, start: int = 100, long: int = 90, kernel: int = 0) -> list[str]:
    """One operator every 100 µs, each `long` µs and, where `kernel` is given, with a kernel of so many µs."""
    lines = []
    for at, name in enumerate(names):
        begin = start + 100 * at
        work = f"kernel=vectorized_elementwise_kernel@{begin + 50}-{begin + 50 + kernel}" if kernel else ""
        lines.append("    " + operator(name, begin, begin + long, size, work))
    return lines


def step(*lines: str, end: int = 10_000, gpu: Gpu | None = None) -> Profile:
    return draw("\n".join([f"ProfilerStep#1 0-{end}", f"  model.py(3): act 1-{end - 1}", *lines]), gpu)


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ElementwiseOpFlood, profile)


class TestReports:
    def test_eight_operators_in_a_row_on_large_tensors(self) -> None:
        (finding,) = findings(ElementwiseOpFlood, step(*chain(MISH)))
        assert finding.message == (
            "8 pointwise operators in a row on 512×1024 take 720 µs: `abs`, `neg`, `exp`, `log1p`, `clamp` …"
        )
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "act")]
        assert finding.confidence == "high"
        assert finding.cost_ns == 720_000

    def test_views_constants_and_casts_of_scalars_do_not_interrupt(self) -> None:
        lines = chain(MISH)
        lines[3:3] = ["    aten::view 391-395 dims=512x1024 types=float"]
        lines[5:5] = ["    aten::zeros_like 491-495 dims=512x1024 types=float"]
        (match,) = matches(step(*lines))
        assert match.evidence.count == 8

    def test_parts_that_are_broadcast_belong_to_it(self) -> None:
        lines = [*chain(MISH[:4]), f"    {operator('sigmoid', 500, 590, '1024')}", *chain(MISH[4:], start=600)]
        (match,) = matches(step(*lines))
        assert match.evidence.count == 9

    def test_scalars_on_the_way_neither_count_nor_interrupt(self) -> None:
        lines = [*chain(MISH[:4]), f"    {operator('mul', 500, 510, '1')}", *chain(MISH[4:], start=600)]
        (match,) = matches(step(*lines))
        assert match.evidence.count == 8

    def test_many_operators_on_small_tensors(self) -> None:
        (match,) = matches(step(*chain(SCALED * 3, size=SMALL, long=5)))
        assert match.evidence.count == 24

    def test_repetition_with_gradients_is_less_sure(self) -> None:
        lines = chain(SCALED * 2)
        lines[0] += "  seq=7"
        backward = "autograd::engine::evaluate_function: MulBackward0"
        lines.append(f"    {backward} 5000-5100 seq=7 fwd=1")
        assert [match.confidence for match in matches(step(*lines))] == ["medium"]

    def test_the_kernels_where_they_outlast_the_host(self) -> None:
        profile = step(*chain(MISH, kernel=100), gpu=A100)
        (match,) = matches(profile)
        assert {profile.name(row) for row in match.events} == {"vectorized_elementwise_kernel"}

    def test_a_chain_through_several_functions_at_the_one_that_calls_them(self) -> None:
        calls = [*chain(MISH[:4]), *chain(MISH[4:], start=600)]
        lines = ["    ops.py(1): one 99-495", *calls[:4], "    ops.py(9): two 599-995", *calls[4:]]
        profile = step(*(f"  {line}" if "aten" in line else line for line in lines))
        (finding,) = findings(ElementwiseOpFlood, profile)
        assert [place.function for place in finding.places] == ["act"]

    def test_the_gradients_count_once_and_through_the_forward_pass(self) -> None:
        lines = [f"{line}  seq={at}" for at, line in enumerate(chain(MISH), start=5)]
        names = ["Abs", "Neg", "Exp", "Log1P", "Clamp", "Add", "Tanh", "Mul"]
        for at, name in reversed([*enumerate(names)]):
            begin = 5000 + 100 * (7 - at)
            node = f"{begin}-{begin + 80} seq={at + 5} fwd=1"
            lines += [
                f"    autograd::engine::evaluate_function: {name}Backward0 {node}",
                f"      {name}Backward0 {begin + 1}-{begin + 79} seq={at + 5} fwd=1",
                f"        {operator('mul 2', begin + 10, begin + 60)}",
            ]
        (finding,) = findings(ElementwiseOpFlood, step(*lines))
        assert finding.matches == 1
        assert finding.cost_ns == 8 * 90_000 + 8 * 80_000

    def test_a_gradient_of_the_next_operator_does_not_count(self) -> None:
        # An operator that autograd does not record has the number of the next one that it does.
        lines = [f"{line}  seq=5" for line in chain(MISH)]
        lines.append("    autograd::engine::evaluate_function: AddmmBackward0 5000-6000 seq=5 fwd=1")
        (finding,) = findings(ElementwiseOpFlood, step(*lines))
        assert finding.cost_ns == 8 * 90_000


class TestSaves:
    def test_what_need_not_be_read_and_written(self) -> None:
        # 10 tensors are read and 8 written. One fused operator reads one to three and writes one: 3 of 18 expected.
        # All operators take the same time, so none of it is arithmetic.
        low, expected, high = saving_ns(ElementwiseOpFlood, step(*chain(MISH)))
        assert low == 0
        assert expected == 720_000 * 5 / 6
        assert high == 720_000 * 7 / 8  # the launch of one of eight remains

    def test_not_half_of_the_arithmetic_on_a_cpu(self) -> None:
        slow = ["    " + operator("tanh", 700, 1420), "    " + operator("mul 2", 1430, 1520)]
        lines = [*chain(MISH[:6]), *slow]
        _, expected, _ = saving_ns(ElementwiseOpFlood, step(*lines))
        # 7 × 90 + 720 = 1350 µs, 630 of them arithmetic: 315 stay, and 3 of 18 of the other 1035.
        assert expected == pytest.approx(1_350_000 - 315_000 - 1_035_000 * 3 / 18)

    def test_all_but_one_launch_at_best_where_tensors_are_small(self) -> None:
        _, expected, high = saving_ns(ElementwiseOpFlood, step(*chain(SCALED * 3, size=SMALL, long=9)))
        # 24 × 9 µs; a compiled call costs as much as 8 of them, one operator as much as 1.
        assert expected == 216_000 * 2 / 3
        assert high == 216_000 * 23 / 24


class TestStaysQuiet:
    def test_seven_operators(self) -> None:
        assert matches(step(*chain(MISH[:7]))) == ()
        assert len(matches_of(ElementwiseOpFlood({"min_operators": 7}), step(*chain(MISH[:7])))) == 1

    def test_a_product_in_between(self) -> None:
        lines = [*chain(MISH[:4]), "    aten::mm 500-590 dims=512x512,512x1024 types=float,float"]
        assert matches(step(*lines, *chain(MISH[4:], start=600))) == ()

    def test_a_sum_in_between(self) -> None:
        lines = [*chain(MISH[:4]), f"    {operator('sum', 500, 590)}"]
        assert matches(step(*lines, *chain(MISH[4:], start=600))) == ()

    def test_tensors_of_other_sizes(self) -> None:
        assert matches(step(*chain(MISH[:4]), *chain(MISH[4:], size="300x7", start=600))) == ()

    def test_small_tensors_in_fewer_operators(self) -> None:
        assert matches(step(*chain(SCALED * 2, size=SMALL))) == ()
        assert len(matches_of(ElementwiseOpFlood({"min_operators_small": 16}), step(*chain(MISH + SCALED, SMALL)))) == 1

    def test_tensors_just_too_small_for_memory(self) -> None:
        assert matches(step(*chain(MISH, size="255x257"))) == ()
        assert len(matches(step(*chain(MISH, size="256x256")))) == 1

    def test_a_gpu_that_waits_for_the_host(self) -> None:
        assert matches(step(*chain(MISH, kernel=2), gpu=A100)) == ()

    @pytest.mark.parametrize(
        "around",
        ["Optimizer.step#Mine.step", "Torch-Compiled", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"],
    )
    def test_what_others_do(self, around: str) -> None:
        name = around.replace("Torch-Compiled", "Torch-Compiled Region: 0/0")
        assert matches(step(f"    {name} 90-900", *(f"  {line}" for line in chain(MISH)))) == ()

    def test_what_runs_inside_an_operator(self) -> None:
        assert matches(step("    aten::huber_loss 90-900", *(f"  {line}" for line in chain(MISH)))) == ()

    def test_the_backward_pass(self) -> None:
        node = "    autograd::engine::evaluate_function: MishBackward0 90-900 seq=3 fwd=1"
        assert matches(step(node, *(f"  {line}" for line in chain(MISH)))) == ()

    def test_two_steps_that_each_have_half_of_it(self) -> None:
        lines = ["ProfilerStep#1 0-490", *chain(MISH[:4]), "ProfilerStep#2 495-990", *chain(MISH[4:], start=500)]
        assert matches(draw("\n".join(line.replace("    ", "  ") for line in lines))) == ()

    def test_an_average_of_the_weights_in_place(self) -> None:
        assert matches(step(*chain(["mul_", "add_ 2"] * 6))) == ()

    def test_an_average_of_the_weights_that_makes_new_tensors(self) -> None:
        assert matches(step(*chain(["mul", "mul", "add 2"] * 4))) == ()

    def test_the_same_operator_on_one_tensor_after_the_other(self) -> None:
        assert matches(step(*chain(["nan_to_num"] * 12))) == ()

    def test_weights_and_biases_in_turns(self) -> None:
        turns = [LARGE, "1024"] * 6
        lines = [line for at, size in enumerate(turns) for line in chain([MISH[at % 8]], size, 100 + 100 * at)]
        assert matches(step(*lines)) == ()

    def test_what_costs_less_than_a_hundredth_of_the_step(self) -> None:
        profile, rule = step(*chain(MISH, long=9), end=10_000), ElementwiseOpFlood()
        assert worth_reporting(rule, groups_of(profile, matches(profile))) == ([], 1, 0)

    def test_scores_of_attention_whose_rule_speaks_of_them(self) -> None:
        """Their scale, bias and mask are what the fused attention does."""
        lines = [
            "    aten::bmm 100-190 dims=8x512x64,8x64x512 types=float,float",
            *chain(["mul", "add 2"] * 4, size="8x512x512", start=200),
            "    aten::softmax 1000-1090 dims=8x512x512,-,- types=float,Scalar,- scalars=,-1,",
            "    aten::bmm 1100-1190 dims=8x512x512,8x512x64 types=float,float",
        ]
        lines[1] += "  seq=3"
        lines.append("    autograd::engine::evaluate_function: MulBackward0 2000-2090 seq=3 fwd=1")
        profile = step(*lines)
        reported = checked(profile, [ElementwiseOpFlood(), UnfusedAttention()])[1]
        assert [matches_of(rule, profile) != () for rule in (ElementwiseOpFlood, UnfusedAttention)] == [True, True]
        assert [evidence.finding.rule for evidence in reported] == ["unfused-attention"]
