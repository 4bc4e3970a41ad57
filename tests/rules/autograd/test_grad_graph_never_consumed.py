"""grad-graph-never-consumed: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import count

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, Gpu, draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.autograd.grad_graph_never_consumed import GradGraphNeverConsumed

STEP_US = 1_000


class Drawing:
    """Steps in which forward and backward passes are drawn, with autograd's counter kept as autograd keeps it."""

    def __init__(self, stacks: bool = True) -> None:
        self.stacks = stacks
        self.lines: list[str] = []
        self.numbers = count(100)
        self.at = 0

    def step(self) -> None:
        number = -(-self.at // STEP_US)
        self.at = number * STEP_US
        self.lines.append(f"ProfilerStep#{number} {self.at}-{self.at + STEP_US - 10}")
        self.at += 10

    def forward(self, nodes: int, place: str = "validate", frozen: bool = False, kernel: bool = False) -> list[int]:
        """Operators of 8 µs every 10 µs, each with a node unless frozen; the numbers of the nodes."""
        start, indent = self.at, "  "
        if self.stacks:
            end = start + 10 * nodes + 10
            self.lines.append(f"  train.py(9): {place} {start}-{end}")
            self.lines.append(f"    nn.Module: Net_0 {start + 1}-{end - 1}")
            indent = "      "
        made = []
        number = next(self.numbers)
        for _ in range(nodes):
            self.at += 10
            work = f" kernel=gemm@{self.at + 1}-{self.at + 9}" if kernel else ""
            self.lines.append(f"{indent}aten::mul {self.at - 5}-{self.at + 3} seq={number}{work}")
            if not frozen:
                made.append(number)
                number = next(self.numbers)
        self.numbers = count(number)
        self.at = start + 10 * nodes + 20
        return made

    def backward(self, numbers: list[int]) -> None:
        for number in reversed(numbers):
            self.lines.append(f"  autograd::engine::evaluate_function: Mul {self.at}-{self.at + 3} seq={number} fwd=1")
            self.at += 5
        self.at += 5

    def profile(self, gpu: Gpu | None = None) -> Profile:
        return draw("\n".join(self.lines), gpu)


def training(steps: int = 3, validated: int = 12, stacks: bool = True) -> Drawing:
    """Steps that train 12 nodes, after a pass of other nodes that no backward pass uses."""
    drawing = Drawing(stacks)
    for _ in range(steps):
        drawing.step()
        drawing.forward(validated)
        drawing.backward(drawing.forward(12, "train"))
    return drawing


class TestReports:
    def test_a_pass_that_no_backward_uses(self) -> None:
        (finding,) = findings(GradGraphNeverConsumed, training().profile())
        assert finding.message == (
            "Autograd records 12 nodes in each pass of `Net_0` that no backward pass uses: up to 96 µs a pass"
        )
        assert [(place.file, place.function) for place in finding.places] == [("train.py", "validate")]
        assert (finding.matches, finding.confidence) == (3, "high")

    def test_without_stacks_nodes_that_follow_one_another(self) -> None:
        (finding,) = findings(GradGraphNeverConsumed, training(stacks=False).profile())
        assert finding.message.startswith("Autograd records 12 nodes in each pass that no")
        assert (finding.places, finding.confidence) == ([], "medium")

    def test_with_low_confidence_where_nothing_runs_backward(self) -> None:
        drawing = Drawing()
        for _ in range(3):
            drawing.step()
            drawing.forward(12)
        (finding,) = findings(GradGraphNeverConsumed, drawing.profile())
        assert (finding.matches, finding.confidence) == (3, "low")

    def test_benchmarks_as_many_nodes_with_and_without_a_graph(self) -> None:
        (match, *_) = matches_of(GradGraphNeverConsumed, training().profile())
        benchmark = GradGraphNeverConsumed().benchmark(match.evidence)
        assert benchmark is not None
        assert "range(12)" in benchmark.before
        assert benchmark.after.startswith("with torch.no_grad():\n    result = x")
        for statement in (benchmark.setup, benchmark.before, benchmark.after):
            ast.parse(statement)

    def test_the_innermost_of_operators_that_read_one_number_once(self) -> None:
        lines = training().lines
        outer = [f"{line}\n{line.replace('aten::mul', '  aten::mm')}" for line in lines if "aten::mul" in line]
        others = [line for line in lines if "aten::mul" not in line]
        text = "\n".join(sorted([*others, *outer], key=_start))
        (match, *_) = matches_of(GradGraphNeverConsumed, draw(text))
        assert match.evidence.nodes == 12


class TestSaves:
    def test_what_nodes_cost_and_not_what_the_operators_take(self) -> None:
        # 12 nodes in each step: at most 4 µs and half of the operator's 8 µs, 1.2 µs and 15 % are expected.
        low, expected, high = saving_ns(GradGraphNeverConsumed, training().profile())
        assert (low, expected, high) == (0, 12 * 2_400, 12 * 8_000)

    def test_more_of_a_recording_that_makes_steps_longer(self) -> None:
        """What a node costs is known without the profiler; in a recording twice as long it is twice as much."""
        profile = training().profile()
        captured = replace(profile.metadata.captured, step_ns=(profile.pace.recorded_ns or 0) // 2)
        slowed = Profile(replace(profile.table, metadata=replace(profile.metadata, captured=captured)))
        (match, *_) = matches_of(GradGraphNeverConsumed, slowed)
        assert match.lost is not None
        assert sum(end - start for start, end in match.lost) == 12 * 8_000, "no more than the operators' own time"
        assert match.evidence.usual == pytest.approx((2 * 1_200 + 1_200) / 8_000)

    def test_on_a_device_what_does_not_hide_behind_its_work(self) -> None:
        drawing = Drawing()
        for _ in range(3):
            drawing.step()
            drawing.forward(12, kernel=True)
            drawing.backward(drawing.forward(12, "train"))
        # Kernels run from 6 µs after each operator's start to 14 µs, into the 4 µs of the next one's node.
        (match, *_) = matches_of(GradGraphNeverConsumed, drawing.profile(A100))
        assert match.lost is not None
        assert sum(end - start for start, end in match.lost) == 4_000


class TestStaysQuiet:
    def test_below_ten_nodes(self) -> None:
        assert matches_of(GradGraphNeverConsumed, training(validated=10).profile())
        assert not matches_of(GradGraphNeverConsumed, training(validated=9).profile())
        assert matches_of(GradGraphNeverConsumed({"min_nodes": 9}), training(validated=9).profile())

    def test_for_frozen_parameters(self) -> None:
        drawing = Drawing()
        for _ in range(3):
            drawing.step()
            drawing.forward(12, frozen=True)
            drawing.backward(drawing.forward(12, "train"))
        assert not matches_of(GradGraphNeverConsumed, drawing.profile())

    @pytest.mark.parametrize("stacks", [True, False])
    def test_for_several_passes_before_one_backward(self, stacks: bool) -> None:
        drawing = Drawing(stacks)
        for _ in range(3):
            drawing.step()
            drawing.backward([number for _ in range(2) for number in drawing.forward(12)])
        assert not matches_of(GradGraphNeverConsumed, drawing.profile())

    def test_for_an_auxiliary_head_of_a_module_that_is_used(self) -> None:
        drawing = Drawing()
        for _ in range(3):
            drawing.step()
            drawing.backward(drawing.forward(30)[:12])
        assert not matches_of(GradGraphNeverConsumed, drawing.profile())

    def test_in_the_last_step_unless_the_module_went_unused_before(self) -> None:
        assert len(matches_of(GradGraphNeverConsumed, training(steps=3, stacks=False).profile())) == 2
        assert len(matches_of(GradGraphNeverConsumed, training(steps=3).profile())) == 3

    def test_for_what_no_younger_graph_was_used_after(self) -> None:
        drawing = Drawing()
        for is_trained in (True, False, False):
            drawing.step()
            numbers = drawing.forward(12)
            drawing.backward(numbers if is_trained else [])
        assert not matches_of(GradGraphNeverConsumed, drawing.profile())

    def test_inside_the_backward_pass_where_a_checkpoint_is_computed_anew(self) -> None:
        drawing = training(validated=0)
        recomputed = []
        for line in drawing.lines:
            recomputed.append(line)
            if "evaluate_function" in line:
                start = _start(line)
                number = 500 + start
                recomputed += [f"    aten::mul {start + 1}-{start + 2} seq={number}"]
        assert not matches_of(GradGraphNeverConsumed, draw("\n".join(recomputed)))

    def test_under_no_grad(self) -> None:
        lines = [line.partition(" seq=")[0] if "fwd" not in line else line for line in training().lines]
        assert not matches_of(GradGraphNeverConsumed, draw("\n".join(lines)))

    def test_without_operators(self) -> None:
        assert not matches_of(GradGraphNeverConsumed, draw("ProfilerStep#1 0-90"))


def _start(line: str) -> int:
    times: Iterator[str] = (word for word in line.split() if word.partition("-")[0].isdigit())
    return int(next(times).partition("-")[0])
