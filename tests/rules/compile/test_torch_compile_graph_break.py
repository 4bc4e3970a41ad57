"""torch-compile-graph-break: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, saving_ns
from tb_tidy_plugin.rules.compile.torch_compile_graph_break import TorchCompileGraphBreak
from tb_tidy_plugin.trace.compiled_code import CompiledCode, CompilerReason
from tests.support.compiled import with_compiled

STEP_US = 1_000
CALL = """
ProfilerStep#1 0-990
  train.py(9): step 1-989
    TorchDynamo Cache Lookup 10-20
    Torch-Compiled Region: 0/0 21-600
      model.py(5): forward 22-599
        Pregraph bytecode 23-25
        AOTDispatcher Runtime Wrapper Prologue 26-32
        CompiledFunction 33-130
          aten::mm 40-120
        {gap}
        TorchDynamo Cache Lookup 260-270
        Torch-Compiled Region: 1/0 271-500
          model.py(8): torch_dynamo_resume_in_forward_at_8 272-499
            Pregraph bytecode 273-275
            AOTDispatcher Runtime Wrapper Prologue 276-282
            CompiledFunction 290-390
              aten::mm 300-380
"""
READS_BACK = ["aten::abs 140-160", "  aten::abs 150-155", "aten::item 170-180", "  aten::_local_scalar_dense 172-178"]
ASKED_FOR = ["torch/_dynamo/eval_frame.py(1423): _fn 140-200", "  model.py(2): note 150-190", "    aten::norm 160-180"]
GRAPH_BREAK = ["torch/_dynamo/decorators.py(850): graph_break 140-150"]
IN_LIBRARY = ["torch/_dynamo/eval_frame.py(1423): _fn 140-200", "  torch/_dynamo/utils.py(5): note 150-190"]
BACKWARD = """
    autograd::engine::evaluate_function: CompiledFunctionBackward 800-900 seq=7 fwd=1
      CompiledFunctionBackward 801-899 seq=7 fwd=1
        aten::mm 820-880
"""
UNBROKEN = CALL.partition("        {gap}")[0]

NESTED = """
ProfilerStep#1 0-990
  train.py(9): step 1-989
    Torch-Compiled Region: 0/0 20-900
      model.py(15): forward 21-899
        Pregraph bytecode 22-24
        CompiledFunction 30-130
        TorchDynamo Cache Lookup 140-150
        Torch-Compiled Region: 1/0 151-500
          model.py(3): block 152-499
            <built-in function print> 155-160
            TorchDynamo Cache Lookup 161-171
            Torch-Compiled Region: 2/0 172-400
              model.py(4): torch_dynamo_resume_in_block_at_4 173-399
                Pregraph bytecode 174-176
                CompiledFunction 180-380
        TorchDynamo Cache Lookup 510-520
        Torch-Compiled Region: 3/0 521-700
          model.py(16): torch_dynamo_resume_in_forward_at_16 522-699
            Pregraph bytecode 523-525
            CompiledFunction 530-690
"""


def shifted(text: str, step: int) -> str:
    """The drawing of one step, as the step with this number."""
    lines = []
    for line in filter(str.strip, text.splitlines()):
        name, _, times = line.rpartition(" ")
        start, end = (int(time) + step * STEP_US for time in times.split("-"))
        lines.append(f"{name.replace('ProfilerStep#1', f'ProfilerStep#{step + 1}')} {start}-{end}")
    return "\n".join(lines)


def with_gap(gap: Sequence[str]) -> str:
    return CALL.replace("{gap}", "\n        ".join(gap))


def without_stacks(text: str) -> str:
    """The drawing without Python frames, indented again."""
    return "\n".join(line for line in text.splitlines() if "): " not in line and "<built-in" not in line)


def profile(gap: Sequence[str] = READS_BACK, steps: int = 3, other_steps: int = 0) -> Profile:
    calls = [shifted(with_gap(gap), step) for step in range(steps)]
    return draw("\n".join([*calls, *(shifted(UNBROKEN, steps + step) for step in range(other_steps))]))


def undented(text: str) -> Profile:
    """A drawing whose Python frames were taken out: times alone show the nesting."""
    ends: list[int] = []
    lines = []
    for line in filter(str.strip, text.splitlines()):
        start, end = (int(time) for time in line.rpartition(" ")[2].split("-"))
        while ends and ends[-1] <= start:
            ends.pop()
        lines.append("  " * len(ends) + line.strip())
        ends.append(end)
    return draw("\n".join(lines))


class TestReports:
    def test_the_line_of_the_break(self) -> None:
        (finding,) = findings(TorchCompileGraphBreak, profile())
        assert finding.message == (
            "`torch.compile` breaks the graph in `forward` at line 8: one more piece per call, with 179 µs of overhead"
        )
        assert [(place.file, place.line, place.precision) for place in finding.places] == [("model.py", 8, "exact")]
        assert (finding.matches, finding.matches_per_step, finding.confidence) == (3, 1.0, "high")

    def test_dynamo_s_reason_where_it_was_captured(self) -> None:
        asked = [
            CompilerReason("of another line", "model.py", 9, "forward"),
            CompilerReason("Unsupported Tensor.item() call.", "model.py", 8, "forward"),
            CompilerReason("of another file", "layers.py", 8, "forward"),
        ]
        (finding,) = findings(TorchCompileGraphBreak, with_compiled(profile(), CompiledCode(breaks=asked)))
        said = "the break reads a value back. Dynamo's reason: Unsupported Tensor.item() call. Reported for"
        assert said in finding.details[0].text  # type: ignore[union-attr]
        (without,) = findings(TorchCompileGraphBreak, profile())
        assert "Dynamo's reason" not in str(without.details)

    def test_a_break_in_a_function_as_the_cause_of_those_in_its_callers(self) -> None:
        found = findings(TorchCompileGraphBreak, draw("\n".join(shifted(NESTED, step) for step in range(2))))
        assert [(finding.places[0].function, finding.places[0].line) for finding in found] == [("block", 4)]
        assert found[0].message.startswith(
            "`torch.compile` breaks the graph in `block` at line 4: 3 more pieces per call"
        )
        # Three look-ups; of 1/0 what comes after 2/0, which it called, and all of 2/0 and 3/0.
        assert found[0].cost_ns == 30_000 + 100_000 + 228_000 + 179_000

    def test_without_stacks_the_pieces_with_medium_confidence_where_a_number_is_read_back(self) -> None:
        text = "\n".join(shifted(without_stacks(with_gap(READS_BACK)), step) for step in range(2))
        (finding,) = findings(TorchCompileGraphBreak, undented(text))
        assert finding.message == ("`torch.compile` breaks the graph: one more piece per call, with 179 µs of overhead")
        assert (finding.places, finding.confidence) == ([], "medium")

    def test_a_library_that_keeps_out_of_the_graph_as_a_break_of_the_users(self) -> None:
        assert matches_of(TorchCompileGraphBreak, profile(IN_LIBRARY))

    def test_from_the_number_of_breaks_that_the_user_sets(self) -> None:
        assert matches_of(TorchCompileGraphBreak({"min_breaks": 1.0}), profile())
        assert not matches_of(TorchCompileGraphBreak({"min_breaks": 1.5}), profile())


class TestSaves:
    def test_what_a_piece_and_operators_before_it_take_at_least_half(self) -> None:
        # Look-up 10, the piece without its product 229 - 80, `abs` 20 µs; reading the number back is not work.
        assert saving_ns(TorchCompileGraphBreak, profile()) == (0, 179_000, 179_000)

    def test_the_same_around_the_nodes_of_the_backward_pass(self) -> None:
        with_number = with_gap(READS_BACK).replace("CompiledFunction 290-390", "CompiledFunction 290-390 seq=7")
        lines = with_number.rstrip() + BACKWARD + shifted(with_gap(READS_BACK), 1)
        (finding,) = findings(TorchCompileGraphBreak, draw(lines))
        assert finding.cost_ns == 179_000 + (100_000 - 60_000) // 2, "in one of two steps"

    def test_not_the_operators_where_nothing_tells_those_of_the_graph(self) -> None:
        # Backend `eager`: the graph's own operators lie in the region as those between the pieces do.
        text = "\n".join(shifted(with_gap(READS_BACK), step) for step in range(2))
        (finding,) = findings(TorchCompileGraphBreak, draw(text.replace("CompiledFunction", "aten::linear")))
        assert finding.cost_ns == 10_000 + (229_000 - 100_000)

    def test_look_ups_and_pieces_alone_before_pytorch_2_6(self) -> None:
        lines = [line for line in with_gap(READS_BACK).splitlines() if "Pregraph" not in line and "AOTD" not in line]
        text = "\n".join(shifted("\n".join(lines), step) for step in range(2))
        (finding,) = findings(TorchCompileGraphBreak, draw(text))
        assert finding.cost_ns == 10_000 + (229_000 - 80_000)


class TestStaysQuiet:
    @pytest.mark.parametrize("gap", [ASKED_FOR, GRAPH_BREAK], ids=["disable", "graph_break"])
    def test_for_breaks_that_were_asked_for(self, gap: list[str]) -> None:
        assert not matches_of(TorchCompileGraphBreak, profile(gap))

    def test_without_stacks_for_breaks_that_may_have_been_asked_for(self) -> None:
        text = "\n".join(shifted(without_stacks(with_gap(["aten::abs 140-150"])), step) for step in range(2))
        assert not matches_of(TorchCompileGraphBreak, undented(text))

    def test_for_one_piece(self) -> None:
        assert not matches_of(TorchCompileGraphBreak, profile(steps=0, other_steps=3))

    def test_for_a_single_break_in_the_profile(self) -> None:
        assert matches_of(TorchCompileGraphBreak, profile(steps=2))
        assert not matches_of(TorchCompileGraphBreak, profile(steps=1))

    def test_for_breaks_that_do_not_come_in_each_step(self) -> None:
        assert not matches_of(TorchCompileGraphBreak, profile(steps=2, other_steps=1))

    def test_without_compiled_code(self) -> None:
        assert not matches_of(TorchCompileGraphBreak, draw("ProfilerStep#1 0-900\n  aten::item 100-200"))
