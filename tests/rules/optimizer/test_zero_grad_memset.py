"""zero-grad-memset: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.checker import NotChecked, check_rule
from tb_tidy_plugin.rulekit import Match, Profile
from tb_tidy_plugin.rulekit.testing import A100, draw, findings, matches_of, row_of, saving_ns
from tb_tidy_plugin.rules.optimizer.zero_grad_memset import ZeroGradMemset
from tb_tidy_plugin.trace.columns import EventTable

# As an optimizer's `zero_grad(set_to_none=False)` is recorded without stacks, twice.
TWO_STEPS = """
    ProfilerStep#1                          0-999
      Optimizer.zero_grad#SGD.zero_grad     100-200
        aten::zero_                         110-120
          aten::fill_                       111-119
        aten::zero_                         130-150
          aten::fill_                       131-149
    ProfilerStep#2                          1000-2000
      Optimizer.zero_grad#SGD.zero_grad     1100-1200
        aten::zero_                         1110-1120
        aten::zero_                         1130-1150
"""

# With stacks: the annotation ends in the tree with the built-in that opened it.
WITH_STACKS = """
    train.py(9): step                                                0-1000
      torch/optim/optimizer.py(1023): zero_grad                      100-300
        torch/autograd/profiler.py(918): __enter__                   105-120
          <built-in method _record_function_enter_new of x at 0x1>   106-110
            Optimizer.zero_grad#Adam.zero_grad                       107-290
        aten::zero_                                                  130-140
        <built-in method zero_ of Tensor object at 0x2>              150-170
          aten::zero_                                                151-169
"""

OF_A_MODULE = """
    train.py(9): step                               0-1000
      torch/nn/modules/module.py(2948): zero_grad   100-300
        aten::zero_                                 130-140
"""


def matches(profile: Profile) -> tuple[Match, ...]:
    return matches_of(ZeroGradMemset, profile)


class TestReports:
    def test_an_optimizers_gradients_without_stacks(self) -> None:
        (finding,) = findings(ZeroGradMemset, draw(TWO_STEPS))
        assert finding.message == (
            "`SGD.zero_grad` fills gradients with zeros instead of dropping them: 2 × `aten::zero_`, 30 µs"
        )
        assert (finding.matches, finding.matches_per_step, finding.confidence) == (2, 1.0, "high")

    def test_an_optimizers_gradients_with_stacks(self) -> None:
        (finding,) = findings(ZeroGradMemset, draw(WITH_STACKS))
        assert finding.message.startswith("`Adam.zero_grad` fills")
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "step")]
        assert finding.cost_ns == 10_000 + 18_000

    def test_a_modules_gradients(self) -> None:
        (finding,) = findings(ZeroGradMemset, draw(OF_A_MODULE))
        assert finding.message.startswith("`Module.zero_grad` fills")

    def test_what_foreach_fills_at_once(self) -> None:
        profile = draw(
            """
            Optimizer.zero_grad#SGD.zero_grad     100-200
              aten::_foreach_zero_                110-150
                aten::zero_                       111-120
                aten::zero_                       121-130
            """
        )
        (match,) = matches(profile)
        assert match.events == (row_of(profile, "aten::_foreach_zero_"),)

    def test_each_optimizer_and_the_module_are_findings_of_their_own(self) -> None:
        profile = draw(
            """
            train.py(9): step                               0-1000
              Optimizer.zero_grad#SGD.zero_grad             100-199
                aten::zero_                                 110-120
              Optimizer.zero_grad#Adam.zero_grad            200-299
                aten::zero_                                 210-250
              torch/nn/modules/module.py(2948): zero_grad   300-400
                aten::zero_                                 310-330
            """
        )
        messages = [finding.message for finding in findings(ZeroGradMemset, profile)]
        assert [message.split(".")[0] for message in messages] == ["`Adam", "`Module", "`SGD"]

    def test_a_function_of_the_user_that_zeroes_gradients(self) -> None:
        profile = draw("train.py(40): zero_grad 0-100\n  aten::zero_ 10-20")
        (finding,) = findings(ZeroGradMemset, profile)
        assert finding.places[0].function == "zero_grad"

    @pytest.mark.parametrize(
        "name", ["DistributedDataParallel.forward", "torch/nn/parallel/distributed.py(1): forward"]
    )
    def test_less_surely_where_gradients_may_be_views_into_buckets(self, name: str) -> None:
        (match,) = matches(draw(f"    {name} 5000-6000\n{OF_A_MODULE}"))
        assert match.confidence == "medium"

    def test_benchmarks_gradients_of_the_recorded_shapes(self) -> None:
        fill = "aten::zero_ {} dims={} types=float"
        fills = [fill.format("10-19", "8x4"), fill.format("20-29", "8"), fill.format("30-39", "8x4")]
        (match,) = matches(draw("\n  ".join(["Optimizer.zero_grad#SGD.zero_grad 0-100", *fills])))
        benchmark = ZeroGradMemset().benchmark(match.evidence)
        assert benchmark is not None
        assert "for shape in [(8, 4)] * 2 + [(8,)] * 1]" in benchmark.setup
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)

    def test_benchmarks_gradients_that_foreach_fills_at_once(self) -> None:
        text = "Optimizer.zero_grad#SGD.zero_grad 0-100\n  aten::_foreach_zero_ 10-20 dims=8x4+8 types=TensorList"
        (match,) = matches(draw(text))
        assert match.evidence.shapes == ((1, (8, 4)), (1, (8,)))

    def test_benchmarks_nothing_without_shapes(self) -> None:
        assert ZeroGradMemset().benchmark(matches(draw(OF_A_MODULE))[0].evidence) is None


ACCUMULATED = """
    Optimizer.zero_grad#SGD.zero_grad     {0}00-{0}50
      aten::zero_                         {0}10-{0}20  dims=8x4  types=float
      aten::zero_                         {0}30-{0}40  dims=8  types=float
    torch::autograd::AccumulateGrad       {0}60-{0}70  dims=8x4  types=float
      aten::add_                          {0}61-{0}69  dims=8x4,8x4  types=float,float
    torch::autograd::AccumulateGrad       {0}71-{0}75  dims=8  types=float
      aten::add_                          {0}72-{0}74  dims=8,8  types=float,float
    torch::autograd::AccumulateGrad       {0}76-{0}79  dims=2  types=float
      aten::add_                          {0}77-{0}78  dims=2,2  types=float,float
    torch::autograd::AccumulateGrad       {0}80-{0}90  dims=8x4  types=float
      aten::add_                          {0}81-{0}89  dims=8x4,8x4  types=float,float
    aten::add_                            {0}91-{0}99  dims=8,8  types=float,float
"""


class TestSaves:
    @pytest.mark.parametrize("thread", [1, 2])
    def test_the_first_addition_to_each_gradient_that_was_cleared(self, thread: int) -> None:
        """Not those to other gradients, nor that of a second backward pass, nor additions elsewhere."""
        text = "    aten::mm  0-9" + ACCUMULATED.format(1) + ACCUMULATED.format(2)
        backward = ("AccumulateGrad", "add_")
        lines = text.splitlines()
        profile = draw(
            "\n".join(f"{line}  thread={thread}" if any(map(line.count, backward)) else line for line in lines)
        )
        first, second = matches(profile)
        for match, start_ns in ((first, 100_000), (second, 200_000)):
            taken = [(profile.start_ns(row) - start_ns, profile.duration_ns(row)) for row in match.events]
            assert taken == [(10_000, 10_000), (30_000, 10_000), (61_000, 8_000), (72_000, 2_000)]
        (finding,) = findings(ZeroGradMemset, profile)
        assert finding.message.endswith("2 × `aten::zero_`, then 2 × `aten::add_` to them, 30 µs")

    def test_the_fills_of_a_step(self) -> None:
        # 10 + 20 µs in each of two steps.
        assert saving_ns(ZeroGradMemset, draw(TWO_STEPS)) == (0, 30_000, 30_000)


class TestStaysQuiet:
    def test_when_gradients_are_dropped(self) -> None:
        assert not matches(draw("Optimizer.zero_grad#SGD.zero_grad 0-10\nOptimizer.step#SGD.step 11-100"))

    def test_for_zeros_made_anew(self) -> None:
        profile = draw(
            """
            Optimizer.zero_grad#SGD.zero_grad   0-100
              aten::zeros                       10-50
                aten::zero_                     20-40
            """
        )
        assert not matches(profile)

    def test_for_tensors_zeroed_elsewhere(self) -> None:
        assert not matches(draw("train.py(9): zero_grad_norms 0-100\n  aten::zero_ 10-20\naten::zero_ 110-120"))

    def test_beside_a_call_of_zero_grad(self) -> None:
        assert not matches(draw("Optimizer.zero_grad#SGD.zero_grad 0-100\naten::zero_ 110-120"))

    def test_with_graphs_of_launches_that_need_their_gradients_in_place(self) -> None:
        profile = draw(f"{TWO_STEPS}\n    aten::mm 3000-3100 kernel=gemm@3050-3090", A100)
        assert matches(profile)
        with_graph = Profile(_renamed(profile, "cudaLaunchKernel", "cudaGraphLaunch"))
        assert isinstance(check_rule(with_graph, ZeroGradMemset()), NotChecked), "its operators are hidden"


def _renamed(profile: Profile, old: str, new: str) -> EventTable:
    return replace(profile.table, names=tuple(new if name == old else name for name in profile.table.names))
