"""torch-compile-recompilation: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import draw, findings, matches_of, reason_not_checked, saving_ns
from tb_tidy_plugin.rules.compile.torch_compile_recompilation import TorchCompileRecompilation
from tb_tidy_plugin.trace.compiled_code import CompiledCode, CompilerReason
from tests.support.compiled import with_compiled

STEP_US = 1_000


def step(number: int, variant: str | None, stacks: bool = True) -> str:
    """A step of 990 µs; compiling `variant` takes 400 µs in it, and 100 µs more for its backward pass."""
    at = number * STEP_US
    call = [(0, f"Torch-Compiled Region: {variant or '0/0'} {at + 600}-{at + 700}")]
    call += [(1, f"model.py(5): loss {at + 601}-{at + 699}")] if stacks else []
    compiling = [
        (0, f"TorchDynamo Cache Lookup {at + 10}-{at + 20}"),
        (0, f"dynamo {at + 100}-{at + 500}"),
        (1, f"dynamo_data: compile_id={variant} {at + 101}-{at + 102}"),
        (1, f"entire_frame_compile {at + 110}-{at + 490}"),
        (2, f"_compile.compile_inner (dynamo_timed) {at + 120}-{at + 480}"),
    ]
    backward = [
        (0, f"CompiledFunctionBackward {at + 800}-{at + 950}"),
        (1, f"entire_backward_compile {at + 810}-{at + 910}"),
        (2, f"entire_backward_compile_data: fn_name=b, compile_id={variant} {at + 811}-{at + 812}"),
    ]
    events = [*compiling, *call, *backward] if variant else call
    return "\n".join(
        [f"ProfilerStep#{number + 3} {at}-{at + 990}", *("  " * (depth + 1) + text for depth, text in events)]
    )


def profile(*variants: str | None, stacks: bool = True) -> Profile:
    """One step for each of `variants`, None for a step that compiles nothing."""
    return draw("\n".join(step(number, variant, stacks) for number, variant in enumerate(variants)))


class TestReports:
    def test_a_function_that_is_compiled_in_each_step(self) -> None:
        (finding,) = findings(TorchCompileRecompilation, profile("0/3", "0/4", "0/5", "0/6"))
        assert finding.message == "`torch.compile` recompiles `loss`: 4 more variants take 2 ms"
        assert [(place.file, place.function) for place in finding.places] == [("model.py", "loss")]
        assert (finding.matches, finding.matches_per_step, finding.confidence) == (8, 2.0, "high")

    def test_the_guard_that_failed_last_where_it_was_captured(self) -> None:
        again = [
            CompilerReason("0/4: expected 6, actual 9", "model.py", 5, "loss", "0/5"),
            CompilerReason("0/5: expected 9, actual 12", "model.py", 5, "loss", "0/6"),
            CompilerReason("1/5: of another function", "model.py", 9, "other", "1/6"),
        ]
        drawn = with_compiled(profile("0/3", "0/4", "0/5", "0/6"), CompiledCode(recompiles=again))
        (finding,) = findings(TorchCompileRecompilation, drawn)
        assert ". The guard that failed last: expected 9, actual 12. Reported for" in finding.details[0].text  # type: ignore[union-attr]
        (without,) = findings(TorchCompileRecompilation, profile("0/3", "0/4", "0/5", "0/6"))
        assert "guard that failed" not in str(without.details)

    @pytest.mark.parametrize(
        ("failed", "marks"),
        [
            (["tensor 'x' size mismatch at index 0. expected 4, actual 5"] * 4, "mark_dynamic(x, 0)`, on"),
            (
                ["tensor 'L['x']' size mismatch at index 1", "tensor 'b['ids']' size mismatch at index 2"],
                "`torch._dynamo.mark_dynamic(x, 1)`, `torch._dynamo.mark_dynamic(b['ids'], 2)`, on",
            ),
            ([f"tensor 'x' size mismatch at index {at}. expected 4" for at in range(4)], "(x, 2)`, 1 more, on"),
            (["k == 1"] * 4, "Find what changes with `TORCH_LOGS=recompiles`"),
            (["tensor 'x`' size mismatch at index 0. expected 4, actual 5"] * 4, "Find what changes"),
        ],
    )
    def test_the_dimensions_that_changed_where_they_were_captured(self, failed: list[str], marks: str) -> None:
        again = [CompilerReason(f"0/0: {each}", "model.py", 5, "loss", f"0/{at}") for at, each in enumerate(failed, 3)]
        drawn = with_compiled(profile("0/3", "0/4", "0/5", "0/6"), CompiledCode(recompiles=again))
        (finding,) = findings(TorchCompileRecompilation, drawn)
        assert marks in finding.fix

    def test_its_number_where_no_frame_names_it(self) -> None:
        (finding,) = findings(TorchCompileRecompilation, profile("2/1", None, "2/2", "2/3", stacks=False))
        assert finding.message == "`torch.compile` recompiles function 2: 3 more variants take 1.5 ms"

    def test_each_function_by_itself(self) -> None:
        variants = [f"{function}/{at}" for at in range(1, 5) for function in (0, 1)]
        assert len(findings(TorchCompileRecompilation, profile(*variants, stacks=False))) == 2

    def test_with_medium_confidence_where_variants_have_no_numbers(self) -> None:
        lines = "\n".join(step(number, "x", stacks=False) for number in range(4)).splitlines()
        text = "\n".join(line for line in lines if "_data" not in line and "backward" not in line)
        (finding,) = findings(TorchCompileRecompilation, draw(text.replace(": x", "")))
        assert finding.message.startswith("`torch.compile` recompiles functions: 4 more variants")
        assert finding.confidence == "medium"

    def test_what_is_nested_by_time_once_wherever_the_tree_puts_it(self) -> None:
        # With stacks an event that Python opened ends in the tree together with the built-in that opened it.
        text = "\n".join(step(number, f"0/{number + 1}") for number in range(4))
        opened = [
            f"  <built-in method __enter__ of x> {at * STEP_US + 90}-{at * STEP_US + 99}\n{line}"
            if line.strip().startswith("dynamo ")
            else line
            for at, block in enumerate(text.split("ProfilerStep")[1:])
            for line in f"ProfilerStep{block}".strip("\n").splitlines()
        ]
        (finding,) = findings(TorchCompileRecompilation, draw("\n".join(opened)))
        assert finding.cost_ns == 500_000


class TestSaves:
    def test_the_time_in_the_compiler_over_all_steps(self) -> None:
        # Three variants of 400 µs and 100 µs for the backward pass, in four steps; nested events count once.
        found = saving_ns(TorchCompileRecompilation, profile("0/1", None, "0/2", "0/3"))
        assert found == (0, 375_000, 375_000)


class TestStaysQuiet:
    def test_for_first_compilations_in_any_step(self) -> None:
        assert not matches_of(TorchCompileRecompilation, profile("0/0", "1/0", "2/0", "3/0"))

    def test_for_the_warm_up(self) -> None:
        assert not matches_of(TorchCompileRecompilation, profile("0/1", "0/2", None, None))
        assert matches_of(TorchCompileRecompilation({"warm_up_steps": 0}), profile("0/1", "0/2", None, None))

    @pytest.mark.parametrize("function", ["0", "1"])
    def test_for_one_last_smaller_batch(self, function: str) -> None:
        assert not matches_of(TorchCompileRecompilation, profile("0/1", None, f"{function}/2", None))
        assert matches_of(TorchCompileRecompilation({"min_variants": 1}), profile("0/1", None, "0/2", None))

    def test_for_one_variant_more_of_each_of_two_functions(self) -> None:
        assert not matches_of(TorchCompileRecompilation, profile(None, None, "0/1", "1/1"))

    def test_for_compiled_code_that_stays_as_it_is(self) -> None:
        assert not matches_of(TorchCompileRecompilation, profile(None, None, None, None))

    def test_where_no_steps_tell_the_warm_up(self) -> None:
        text = step(0, "0/1", stacks=False).partition("\n")[2].replace("\n  ", "\n")[2:]
        assert "no steps" in reason_not_checked(TorchCompileRecompilation, draw(text))
        assert not matches_of(TorchCompileRecompilation, draw("aten::add 0-10"))
