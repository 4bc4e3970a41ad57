"""What a report leaves out is still there: in a comparison and for a baseline it is neither gone nor new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.cli.main import commands
from tb_tidy_plugin.cli.output import as_text
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.model import Comparison, FindingChange, FindingState
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.compare.recording import StepRange
from tb_tidy_plugin.render.comparison import STATES, comparison_document
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.rulekit.thresholds import relaxed_settings, thresholds_of
from tb_tidy_plugin.rules import catalogue
from tests.ledger.traces import Made

RULE = "tensor-from-python-data"
STEPS = 6


def steps(converted: int, length: int = 990, having: range = range(STEPS), stacks: bool = True) -> str:
    """Steps of `length` µs; those in `having` make a tensor of Python objects, which takes `converted` µs."""
    lines, tensor = [], "dims=64x32,- types=float,Scalar"
    for number in range(1, STEPS + 1):
        at = number * (length + 10)
        lines += [f"ProfilerStep#{number} {at}-{at + length}", f"  train.py(9): step {at + 1}-{at + length - 1}"]
        if number - 1 in having:
            lines += [
                f"    train.py(4): batch {at + 50}-{at + 100 + converted + 60}",
                f"      <built-in method tensor of type object at 0x7f0> {at + 100}-{at + 100 + converted + 20}",
                f"        aten::empty {at + 110}-{at + 111}",
                f"        aten::to {at + 100 + converted}-{at + 101 + converted} {tensor}",
                f"        aten::lift_fresh {at + 102 + converted}-{at + 103 + converted} {tensor}",
                f"        aten::detach_ {at + 104 + converted}-{at + 105 + converted}",
            ]
        lines.append(f"    aten::mm {at + 850}-{at + length - 2}")
    text = "\n".join(lines)
    return text if stacks else "\n".join(line for line in lines if ".py(" not in line and "built-in" not in line)


def side(folder: Path, *arguments: object, **named: object) -> Path:
    folder.mkdir()
    draw_into(folder, steps(*arguments, **named))  # type: ignore[arg-type]
    return folder


def changed(base: Asked | Path, candidate: Asked | Path) -> tuple[FindingChange, Comparison]:
    """The rule's only change between the two."""
    sides = [asked_for(each, Job()) if isinstance(each, Path) else each for each in (base, candidate)]
    comparison = compared(*sides)
    [change] = [each for each in comparison.findings if each.rule == RULE]
    return change, comparison


@pytest.fixture
def above(tmp_path: Path) -> Path:
    """The call takes 108 µs, the rule's limit is 100 µs."""
    return side(tmp_path / "above", 108)


@pytest.fixture
def below(tmp_path: Path) -> Path:
    """The same program, a little faster: 90 µs."""
    return side(tmp_path / "below", 90)


class TestComparison:
    def test_a_finding_that_fell_below_its_rules_own_limit_is_not_gone(self, above: Path, below: Path) -> None:
        change, comparison = changed(above, below)
        assert (change.state, change.only) == ("below_limit", "base")
        assert (change.base_ns, change.candidate_ns) == (108_000, 90_000)
        assert change.reason == "The candidate has it, too, below a limit of the check."
        assert (comparison.predicted_ns, change.realised_ns) == (0, None)

    def test_one_that_rose_above_it_is_not_new(self, above: Path, below: Path) -> None:
        change, _ = changed(below, above)
        assert (change.state, change.only) == ("below_limit", "candidate")
        assert (change.base_ns, change.candidate_ns) == (90_000, 108_000)

    def test_the_share_of_a_step_is_such_a_limit(self, above: Path, tmp_path: Path) -> None:
        """120 µs of a step of 40 ms are 0.3 %."""
        longer = side(tmp_path / "longer", 120, 40_000)
        assert changed(above, longer)[0].state == "below_limit"
        assert changed(longer, above)[0].state == "below_limit"

    def test_what_clearly_costs_less_keeps_that_part_of_its_promise(self, tmp_path: Path) -> None:
        """400 µs became 80 µs: four fifths of the saving are due."""
        before, after = side(tmp_path / "before", 400), side(tmp_path / "after", 80)
        change, comparison = changed(before, after)
        assert change.state == "below_limit"
        saving = next(
            each for each in asked_for(before, Job()).recordings[0].report.findings if each.rule == RULE
        ).saving
        assert saving is not None
        assert comparison.predicted_ns == round(saving.expected_ns * 0.8)
        assert change.realised_ns is not None

    def test_what_clearly_costs_more_is_worse(self, tmp_path: Path) -> None:
        change, _ = changed(side(tmp_path / "before", 80), side(tmp_path / "after", 400))
        assert change.state == "worse"

    def test_what_is_not_there_is_gone_or_new(self, above: Path, tmp_path: Path) -> None:
        without = side(tmp_path / "without", 120, having=range(0))
        assert changed(above, without)[0].state == "gone"
        assert changed(without, above)[0].state == "new"

    def test_every_state_has_words_on_the_terminal_and_in_markdown(self, above: Path, below: Path) -> None:
        assert set(STATES) == set(get_args(FindingState))
        _, comparison = changed(above, below)
        for form in ("text", "markdown"):
            text = as_text(comparison_document(comparison, form), form)
            assert "below the limit" in text
            assert "gone" not in text


class TestNotSeen:
    def test_data_that_one_side_lacks_is_neither_gone_nor_new(self, above: Path, tmp_path: Path) -> None:
        without = side(tmp_path / "no-stacks", 120, stacks=False)
        for one, other, name in ((above, without, "candidate"), (without, above, "baseline")):
            change, comparison = changed(one, other)
            assert change.state == "not_checked"
            assert change.reason.startswith(f"Not checked on the {name}: The profile has no Python stacks")
            assert comparison.predicted_ns == 0

    def test_other_steps_of_the_recording_that_has_it(self, tmp_path: Path) -> None:
        recorded = asked_for(side(tmp_path / "a", 400, having=range(3)), Job())
        first, later = (replace(recorded, steps=StepRange(*chosen)) for chosen in ((1, 3), (4, 6)))
        for one, other in ((first, later), (later, first)):
            change, comparison = changed(one, other)
            assert change.state == "not_checked"
            assert "in other steps" in change.reason
            assert comparison.predicted_ns == 0

    def test_a_finding_of_few_steps_may_be_absent_by_chance(self, tmp_path: Path) -> None:
        """Two steps of six have it: six others lack it in one of eleven cases."""
        rare, never = side(tmp_path / "a", 400, having=range(3, 5)), side(tmp_path / "b", 400, having=range(0))
        for one, other in ((rare, never), (never, rare)):
            change, _ = changed(one, other)
            assert change.state == "not_checked"
            assert "2 of the" in change.reason
            assert "6 steps" in change.reason

    def test_a_finding_of_every_second_step_is_not_absent_by_chance(self, tmp_path: Path) -> None:
        often, never = side(tmp_path / "a", 400, having=range(1, 5)), side(tmp_path / "b", 400, having=range(0))
        assert changed(often, never)[0].state == "gone"


class TestBaseline:
    @staticmethod
    def check(*arguments: str | Path) -> int:
        return CliRunner().invoke(commands, ["check", "--isolated", "--no-cache", *map(str, arguments)]).exit_code

    def test_what_was_below_a_limit_is_not_new(self, above: Path, below: Path, tmp_path: Path) -> None:
        known = tmp_path / "known.json"
        assert self.check(above, "--fail-on", "low") == 1
        assert self.check(below, "--write-baseline", known) == 0
        assert self.check(above, "--baseline", known, "--fail-on", "low") == 0

    def test_what_was_not_there_is(self, above: Path, tmp_path: Path) -> None:
        known = tmp_path / "known.json"
        self.check(side(tmp_path / "without", 120, having=range(0)), "--write-baseline", known)
        assert self.check(above, "--baseline", known, "--fail-on", "low") == 1

    def test_files_of_older_versions_are_read(self, above: Path, tmp_path: Path) -> None:
        known = tmp_path / "known.json"
        self.check(above, "--write-baseline", known)
        content = json.loads(known.read_text())
        del content["left_out"]
        known.write_text(json.dumps(content))
        assert self.check(above, "--baseline", known, "--fail-on", "low") == 0


@pytest.mark.parametrize("rule", catalogue(), ids=lambda rule: rule.name())
def test_weaker_limits_of_each_rule_are_weaker(rule: type) -> None:
    """By the names of thresholds; one that says no direction must be no limit on findings."""
    relaxed = relaxed_settings(rule())
    for name, threshold in thresholds_of(rule).items():
        if name.startswith("min_"):
            assert relaxed[name] < threshold.default, name
        elif name.startswith(("max_", "most_")):
            assert relaxed[name] > threshold.default, name
        else:
            assert name == "warm_up_steps", "a threshold's name begins with min_, max_ or most_"


def kernels(folder: Path, *, replayed: bool) -> Path:
    """Six steps of 1,000 µs with two kernels of 400 µs each, launched one by one, or replayed as a graph."""
    folder.mkdir()
    made = Made()
    for begin in range(0, 6_000, 1_000):
        made.mark(f"ProfilerStep#{begin}", begin, begin + 1_000).operator("aten::mm", begin + 5, begin + 90)
        spans = [(begin + 100.0, begin + 500.0), (begin + 505.0, begin + 905.0)]
        if replayed:
            made.graph(begin + 10, spans)
        else:
            for at, (start, end) in enumerate(spans):
                made.kernel("gemm", start, end, begin + 10 + 5 * at)
    made.written(folder)
    return folder


def test_operators_that_replayed_graphs_hide_are_said_to_be_no_change(tmp_path: Path) -> None:
    eager, graphs = (kernels(tmp_path / str(each), replayed=each) for each in (False, True))
    sides = {each: asked_for(each, Job()) for each in (eager, graphs)}
    for base, candidate, name in ((eager, graphs, "candidate"), (graphs, eager, "baseline")):
        notes = " ".join(compared(sides[base], sides[candidate]).notes)
        assert f"Replayed graphs of the {name} do not show their operators" in notes
    for each in (eager, graphs):
        assert "Replayed graphs" not in " ".join(compared(sides[each], sides[each]).notes)
