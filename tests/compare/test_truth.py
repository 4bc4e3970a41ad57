"""Programs of the corpus, recorded again: the slow one against the fixed one, and each against itself.

`python -m tests.compare` does the same with all of them and writes down what it finds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import compared
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.words.causes import Cause
from tests.accuracy.corpus import CORPUS, Program, programs
from tests.accuracy.processes import record_in
from tests.compare.truth import Truth, measured, truth
from tests.support.recordings import shared

ROUNDS = 3
INSERTED = 20


def pair(rule: str) -> tuple[Program, Program]:
    by_kind = {program.kind: program for program in programs() if program.rule == rule and not program.is_drawn}
    return by_kind["slow"], by_kind["fixed"]


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> list[Truth]:
    rules = ("cat-in-loop", "dataloader-num-workers-zero", "python-loop-tensor-indexing")
    return [truth(*pair(rule), tmp_path_factory.mktemp("truth"), ROUNDS) for rule in rules]


def test_what_was_fixed_is_gone(truths: list[Truth]) -> None:
    assert [set(each.states) for each in truths] == [{"gone"}] * len(truths)


def test_fixes_that_help_are_not_called_slower(truths: list[Truth]) -> None:
    """All take about half of the time or less: a busy machine can hide a smaller difference."""
    assert all(each.measured is not None and each.measured < 0.55 for each in truths)
    assert [each.comparison.verdict for each in truths].count("slower") == 0
    assert all(each.comparison.step_ratio is not None and each.comparison.step_ratio.low < 0.9 for each in truths)


def test_a_program_against_itself_shows_no_clear_difference(truths: list[Truth]) -> None:
    """18 pairs, of which one in twenty may be wrong: more than three are, once in two hundred times."""
    verdicts = [verdict for each in truths for verdict in each.same]
    assert len(verdicts) == len(truths) * 2 * ROUNDS
    assert len(verdicts) - verdicts.count("no_clear_difference") <= 3


def test_the_page_says_what_was_measured() -> None:
    assert measured()["cat-in-loop"] < 0.5


@pytest.mark.parametrize("rule", ["host-sync-scalar-readback", "zero-grad-memset"])
def test_findings_are_the_same_though_lines_were_inserted_above(rule: str, tmp_path: Path) -> None:
    """Recorded really, before and after."""
    slow, _ = pair(rule)
    for name, above in (("before", ""), ("after", "# a remark\n" * INSERTED)):
        source = tmp_path / "source" / "slow.py"
        source.parent.mkdir(exist_ok=True)
        source.write_text(above + (CORPUS / rule / "slow.py").read_text())
        (tmp_path / name).mkdir()
        record_in(tmp_path / name, Program(source, "slow", rule, slow.also))
        shutil.copy(source, tmp_path / name / "slow.py")
    sides = [asked_for(tmp_path / name, Job()) for name in ("before", "after")]
    lines = [
        [place.line for recording in side.recordings for found in recording.report.findings for place in found.places]
        for side in sides
    ]
    assert lines[0]
    assert all(line - INSERTED in lines[0] for line in lines[1])
    states = {change.state for change in compared(*sides).findings if change.rule == rule}
    assert states
    assert states <= {"same", "better", "worse"}


def test_a_real_job_whose_loader_got_workers() -> None:
    """resnet50 on a V100: in its own words, and by how much the median step really got shorter."""
    sides = [asked_for(shared(f"traces/v100_2021_resnet50_workers{workers}"), Job()) for workers in (0, 4)]
    comparison = compared(*sides)
    assert comparison.verdict == "faster"
    assert comparison.step_ratio is not None
    assert comparison.step_ratio.value == pytest.approx(126 / 176, rel=0.01)
    change = next(each for each in comparison.findings if each.rule == "dataloader-num-workers-zero")
    assert change.state == "gone"
    assert change.predicted_ns is not None
    assert change.realised_ns == comparison.realised_ns
    assert change.realised_ns == pytest.approx(change.predicted_ns, rel=0.2)
    assert comparison.ledger is not None
    waiting = next(entry for entry in comparison.ledger.entries if entry.cause is Cause.DATA_LOADING)
    assert waiting.base_ns > 50e6
    assert waiting.candidate_ns < 2e6  # all steps count, the first one, in which workers start, among them
