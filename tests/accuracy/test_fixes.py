"""What `make fixes` says of programs; the programs themselves run in `make fixes` only."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.analysis.fixing import Proposal
from tb_tidy_plugin.fixes.change import SAME_RESULTS, SAME_UP_TO_ROUNDING, Change, changes_behaviour
from tb_tidy_plugin.report.code_model import CodeFix
from tb_tidy_plugin.sources.files import Unavailable
from tests.accuracy.fixes import FIXERS, HEADING, Fixed, compared, section, slow_programs, with_section
from tests.accuracy.record import Results

RESULTS = Results(losses=[1.0, 2.0], digest="a", sums=[3.0])


def fixed(safety: str, results: str, kept: float | None = None) -> Fixed:
    """A program with one fix of this safety."""
    change = CodeFix("id", "rule", "train.py", 1, None, safety, needs_review=False, check="", diff="", replacements=[])
    proposal = Proposal(change, Unavailable("not here"), "", Change((), safety))
    return Fixed(slow_programs()[0], [proposal], applied=1, results=results, kept=kept)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (RESULTS, "equal"),
        (Results([1.0, 2.0001], "b", [3.0]), "up to rounding"),
        (Results([1.0, 2.1], "b", [3.0]), "different"),
        (Results([1.0], "b", [3.0]), "different"),
        (Results([], "", []), "different"),
    ],
)
def test_results_are_equal_near_or_different(after: Results, expected: str) -> None:
    assert compared(RESULTS, after) == expected


def test_where_no_step_returns_or_learns_anything_results_are_not_seen() -> None:
    nothing = Results([], "", [])
    assert compared(nothing, nothing) == "not seen"


@pytest.mark.parametrize(
    ("safety", "holds"),
    [
        (SAME_RESULTS, {"equal"}),
        (SAME_UP_TO_ROUNDING, {"equal", "up to rounding"}),
        (changes_behaviour("x"), {"equal", "up to rounding", "different"}),
    ],
)
def test_a_fix_holds_what_its_safety_says(safety: str, holds: set[str]) -> None:
    assert {each for each in ("equal", "up to rounding", "different") if fixed(safety, each).holds} == holds


def test_the_section_counts_and_takes_its_own_place() -> None:
    found = [fixed(SAME_RESULTS, "equal", 0.9), fixed(SAME_RESULTS, "different", 0.5)]
    text = section([*found, Fixed(found[0].program, reason="No.")], ["a-rule"], is_timed=True)
    assert (
        "such a program: 1; with a diff: 1.\n- Programs with a diff: 2 of 3 (67%).\n- Applied: 2 of 2 (100%).\n" in text
    )
    assert (
        "- Results as stated in the diff: 1 of 2.\n- Not comparable, because no step returns or trains anything: 0.\n"
        in text
    )
    assert "- At least 80% of the promised saving kept: 1 of 2.\n" in text
    page = with_section(f"# Fixes\n\n{HEADING}\n\nold\n\n## Next\n", text)
    assert page == f"# Fixes\n\n{text}\n## Next\n"
    assert with_section("# Fixes\n", text) == f"# Fixes\n\n{text}"


def test_each_rule_with_a_fixer_and_a_program_is_there() -> None:
    rules = {each.rule for each in slow_programs()}
    assert rules <= FIXERS
    assert {"cat-in-loop", "optimizer-single-tensor", "host-sync-scalar-readback"} <= rules
