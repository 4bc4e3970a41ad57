"""scalar-tensors-in-loop: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.python_loops.scalar_tensors_in_loop import ScalarTensorsInLoop

NUMBERS = "dims=, types=float,float"


def rollout(
    steps: int = 40,
    *,
    given: str = NUMBERS,
    operators: tuple[str, str] = ("mul", "add"),
    pick: str = "    aten::select",
    between: str = "",
    function: str = "train.py(3): returns",
    after: str = "",
    seq: bool = False,
    gpu: Gpu | None = None,
) -> Profile:
    """A sum over later rewards that takes 25 µs a step, from 100 µs on."""
    lines = ["ProfilerStep#1 0-9000", f"  {function} 1-8000"]
    for number in range(steps):
        at = 100 + 25 * number
        marks = [f"seq={2 * number + place + 1}" if seq else "" for place in range(2)]
        lines += [
            f"{pick} {at}-{at + 4} dims=40,, types=float,Scalar,Scalar",
            f"    aten::{operators[0]} {at + 5}-{at + 7} {given} {marks[0]}",
            *([f"    {between} {at + 8}-{at + 9}"] if between else []),
            f"    aten::{operators[1]} {at + 10}-{at + 14} {given} {marks[1]}",
        ]
    return draw("\n".join([*lines, after]), gpu)


class TestReports:
    def test_a_sum_over_later_rewards(self) -> None:
        (finding,) = findings(ScalarTensorsInLoop, rollout())
        assert finding.message == ("A Python loop computes with single numbers as tensors: 80 operators, 989 µs")
        assert "begins with `aten::select, aten::mul, aten::add, " in str(finding.details)
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "returns")]

    def test_numbers_that_a_list_holds(self) -> None:
        assert matches_of(ScalarTensorsInLoop, rollout(pick="    aten::alias"))

    def test_tensors_of_one_element(self) -> None:
        assert matches_of(ScalarTensorsInLoop, rollout(given="dims=1,1x1 types=float,float"))

    def test_each_loop_of_a_function_by_itself(self) -> None:
        lines = [
            line
            for first in (100, 5000)
            for at in range(first, first + 64 * 20, 20)
            for line in (
                f"    aten::select {at}-{at + 4} dims=40,, types=float,Scalar,Scalar",
                f"    aten::add {at + 5}-{at + 9} {NUMBERS}",
            )
        ]
        lines[128:128] = [f"    aten::relu {at}-{at + 10} dims=64 types=float" for at in range(2000, 2800, 20)]
        profile = draw("\n".join(["ProfilerStep#1 0-9000", "  train.py(3): returns 1-8000", *lines]))
        assert [match.evidence.operators for match in matches_of(ScalarTensorsInLoop, profile)] == [64, 64]

    def test_a_benchmark_of_as_many_numbers(self) -> None:
        (match,) = matches_of(ScalarTensorsInLoop, rollout())
        benchmark = ScalarTensorsInLoop().benchmark(match.evidence)
        assert benchmark is not None
        assert "torch.zeros(40, device=device)" in benchmark.setup
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)


class TestSaves:
    def test_nearly_all_of_the_loop_with_the_python_in_between(self) -> None:
        assert saving_ns(ScalarTensorsInLoop, rollout()) == pytest.approx((0, 989_000 * 0.96, 989_000 * 0.99))

    def test_on_a_device_only_what_the_calls_take(self) -> None:
        (match,) = matches_of(
            ScalarTensorsInLoop, rollout(gpu=A100, after="    aten::mm 7000-7010 kernel=gemm@7020-7500")
        )
        assert match.lost is None


class TestStaysQuiet:
    @pytest.mark.parametrize(
        "change",
        [
            {"steps": 31},
            {"given": "dims=8,8 types=float,float"},
            {"given": "dims=,8 types=float,float"},
            {"given": "types=Scalar,Scalar"},
            {"operators": ("relu", "exp")},
            {"pick": "    aten::linalg_vector_norm"},
            {"between": "aten::mm"},
            {"between": "nn.Module: Policy_0"},
            {"function": "torch/optim/lbfgs.py(3): step"},
        ],
    )
    def test_at(self, change: dict[str, object]) -> None:
        assert not matches_of(ScalarTensorsInLoop, rollout(**change))  # type: ignore[arg-type]

    def test_numbers_through_which_gradients_go_back(self) -> None:
        backward = "  autograd::engine::evaluate_function: MulBackward0 8100-8120 seq=1 fwd=1"
        assert matches_of(ScalarTensorsInLoop, rollout(seq=True))
        assert not matches_of(ScalarTensorsInLoop, rollout(seq=True, after=backward))

    def test_without_shapes(self) -> None:
        profile = draw("ProfilerStep#1 0-100\n  train.py(3): returns 1-99\n    aten::add 5-9")
        assert reason_not_checked(ScalarTensorsInLoop, profile)
