"""The user's place behind generated code: noted lines, else the function, never the generated file."""

from __future__ import annotations

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import draw, row_of
from tb_tidy_plugin.sources.align import Aligner
from tb_tidy_plugin.sources.frames import Frame
from tb_tidy_plugin.sources.places import place_of, places_of
from tests.support.compiled import captured, compiled_step

FORWARD = [("extern_kernels.mm", [0]), ("cpp_fused_sin_0", [1, 0])]
BACKWARD = [("extern_kernels.addmm", [0])]


def place(profile: Profile, name: str) -> Frame | None:
    """The place of an event, the same by all that give places."""
    row = row_of(profile, name)
    found = place_of(profile, row)
    assert places_of(profile).of(row) == found
    return found


class TestNotedLines:
    def test_the_line_of_a_kernel(self) -> None:
        profile = captured(compiled_step(), launches=FORWARD, backward=BACKWARD)
        line = Frame("model.py", 8, "forward", "exact", own_code=True, compiled="forward")
        assert place(profile, "aten::mm") == place(profile, "aten::resolve_conj") == line
        assert place(profile, "aten::addmm") == Frame(
            "model.py", 8, "forward", "exact", own_code=True, compiled="backward"
        )

    def test_of_a_stack_the_innermost_frame_of_the_user_counts_and_further_lines_are_named(self) -> None:
        profile = captured(compiled_step(), launches=FORWARD)
        assert place(profile, "graph_3_cpp_fused_sin_0") == Frame(
            "layers.py", 3, "gate", "exact", own_code=True, compiled="forward", also=(("model.py", 8),)
        )

    def test_the_callers_go_on_outside_of_the_region(self) -> None:
        profile = captured(compiled_step(), launches=FORWARD)
        stack = Aligner(profile, lambda _: None).stack_of(row_of(profile, "graph_3_cpp_fused_sin_0"))
        assert [(frame.function, frame.line) for frame in stack] == [("gate", 3), ("forward", 9), ("step", 20)]

    def test_what_has_a_library_s_stack_only_belongs_to_the_function(self) -> None:
        profile = captured(compiled_step(), launches=[("extern_kernels.mm", [2]), ("cpp_fused_sin_0", [])])
        function = Frame("model.py", 7, "forward", "definition", own_code=True, compiled="forward")
        assert place(profile, "aten::mm") == place(profile, "graph_3_cpp_fused_sin_0") == function

    def test_stacks_of_frames_are_not_needed(self) -> None:
        drawn = "CompiledFunction 0-90 seq=7\n  ## Call CompiledFxGraph fforward ##  1-80\n    aten::mm 2-70"
        text = f"Torch-Compiled Region: 0/0 0-99\n  {drawn.replace(chr(10), chr(10) + '  ')}"
        found = place(captured(draw(text), launches=[("extern_kernels.mm", [0])]), "aten::mm")
        assert found is not None
        assert (found.file, found.line) == ("model.py", 8)


class TestFunctions:
    def test_forward_and_backward(self) -> None:
        profile = compiled_step()
        for name, of in (
            ("aten::mm", "forward"),
            ("aten::addmm", "backward"),
            ("CompiledFunctionBackward", "backward"),
        ):
            found = place(profile, name)
            assert found is not None
            assert (found.file, found.line, found.precision, found.compiled) == ("model.py", 7, "definition", of)

    def test_of_a_library_the_line_that_calls_it(self) -> None:
        profile = draw("""
train.py(20): step                                0-990
  Torch-Compiled Region: 0/0                      10-300
    torch/optim/adam.py(7): step                  11-299
      CompiledFunction                            20-290
        aten::add                                 40-100
""")
        source = ["def step():", "    update()"]
        aligner = Aligner(profile, lambda _: [""] * 19 + source)
        row = row_of(profile, "aten::add")
        assert place(profile, "aten::add") == Frame("train.py", 20, "step", "definition", own_code=True)
        assert aligner.place_of(row) == aligner.place_of(row_of(profile, "Torch-Compiled Region: 0/0"))

    def test_a_function_of_the_user_that_generated_code_calls_is_its_own_place(self) -> None:
        profile = draw("""
train.py(20): step                                0-990
  Torch-Compiled Region: 0/0                      10-300
    model.py(7): forward                          11-299
      CompiledFunction                            20-290
        kernels.py(3): custom                     30-200
          aten::add                               40-100
""")
        assert place(profile, "aten::add") == Frame("kernels.py", 3, "custom", "definition", own_code=True)

    def test_a_piece_behind_a_break_does_not_claim_the_line_of_the_break(self) -> None:
        profile = draw("""
Torch-Compiled Region: 0/0                        10-300
  model.py(9): torch_dynamo_resume_in_forward_at_9  11-299
    CompiledFunction                              20-290
      aten::add                                   40-100
""")
        found = place(profile, "aten::add")
        assert found is not None
        assert (found.line, found.function, found.precision) == (9, "forward", "definition")


BROKEN = """
train.py(20): step                                0-990
  Torch-Compiled Region: 0/0                      10-900
    model.py(5): forward                          11-899
      torch/_dynamo/eval_frame.py(9): _fn         12-100
        CompiledFunction                          20-90
          aten::mm                                30-80
      aten::item                                  110-150
      model.py(2): note                           160-200
      TorchDynamo Cache Lookup                    210-220
      Torch-Compiled Region: 1/0                  230-800
        model.py(8): torch_dynamo_resume_in_forward_at_8  240-790
          torch/_dynamo/eval_frame.py(9): _fn     250-600
            CompiledFunction                      260-590
          aten::sin                               610-650
"""


class TestBreaks:
    def test_what_runs_between_two_graphs_is_on_the_line_that_broke_them(self) -> None:
        profile = draw(BROKEN)
        aligner = Aligner(profile, lambda _: None)
        found = aligner.place_of(row_of(profile, "aten::item"))
        assert found == Frame("model.py", 8, "forward", "exact", own_code=True)
        frames = aligner.stack_of(row_of(profile, "model.py(2): note"))
        assert [(frame.line, frame.precision) for frame in frames][1:2] == [(8, "exact")]

    def test_behind_the_last_break_no_line_is_known(self) -> None:
        profile = draw(BROKEN)
        found = Aligner(profile, lambda _: ["x"] * 30).place_of(row_of(profile, "aten::sin"))
        assert found == Frame("model.py", 8, "forward", "definition", own_code=True)

    def test_what_goes_on_behind_a_break_has_its_line(self) -> None:
        profile = draw(BROKEN)
        assert place(profile, "model.py(8): torch_dynamo_resume_in_forward_at_8") == Frame(
            "model.py", 8, "forward", "exact", own_code=True
        )

    def test_lines_of_compiled_frames_cost_what_ran_there(self) -> None:
        profile = draw(BROKEN)
        row = row_of(profile, "model.py(5): forward")
        frame = Frame("model.py", 5, "forward", "definition", own_code=True)
        calls = Aligner(profile, lambda _: None).calls_in(row, frame)
        assert [(profile.name(child)[:20], at.line) for child, at in calls] == [
            ("aten::item", 8), ("model.py(2): note", 8), ("TorchDynamo Cache Lo", 8),
        ]  # fmt: skip
