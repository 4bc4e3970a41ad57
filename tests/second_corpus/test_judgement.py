"""The judgement: what is named, what is said besides, and what a loss costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tb_tidy_plugin.report.model import Finding, Place, Saving
from tests.accuracy.page import Promise
from tests.accuracy.turns import StepSeconds
from tests.second_corpus.corpus import LossyProgram, lossy
from tests.second_corpus.judgement import FIRST, Judged, judged_recording, names, why_not
from tests.second_corpus.page import COUNTED_HEADING, TIMED_HEADING, counted_section, timed_section
from tests.second_corpus.proof import Measured, Round, promised

PROGRAM = '''"""Reads its values one by one, and clears its gradients with zeros."""
import torch
from torch import nn

class Losses:
    values_read = True
    gradients_filled = True
    never_said = True

KNOWN = {
    "values_read": ("Values are read one by one", ["host-sync-scalar-readback"]),
    "gradients_filled": ("Gradients are filled", ["zero-grad-memset"]),
    "never_said": ("Nobody looks for it", []),
}

def reads(values):
    return sum(value.item() for value in values)  # loss: values_read

def build():
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)

    def step():
        values = torch.zeros(2000)
        optimizer.zero_grad(set_to_none=False)  # loss: gradients_filled
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        return reads(values)  # loss: never_said

    return step
'''
READS, STEP = 17, 24
MS = 1_000_000


@pytest.fixture
def program(tmp_path: Path) -> LossyProgram:
    path = tmp_path / "small.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return lossy(path)


def finding(rule: str, line: int, file: str = "/job/small.py", saved_ns: int = MS) -> Finding:
    place = Place(file, line, line, "f", "definition", own_code=True, matches=1, duration_ns=1)
    return Finding(
        f"{rule}-{line}", rule, "host", "high", "high", f"{rule} is said.", "Fix it.", 1, 1.0, [place], MS, 0.1,
        Saving(saved_ns, 0, 2 * saved_ns, 1.1, ["replayed"]), [],
    )  # fmt: skip


def judgement_of(program: LossyProgram, *findings: Finding) -> Judged:
    named = {
        loss.name: tuple(at for at, each in enumerate(findings) if names(program, each, loss))
        for loss in program.losses
    }
    return Judged(program, findings, named, (), {}, 10 * MS)


def measured(program: LossyProgram, wholes: list[float], copies: list[float], without: list[float]) -> Measured:
    """Rounds in which only the first loss saves something."""
    judgement = judgement_of(program, finding("zero-grad-memset", STEP), finding("host-sync-scalar-readback", READS))
    rounds = []
    for whole, copy, less in zip(wholes, copies, without, strict=True):
        steps = [StepSeconds(each, each) for each in (whole, copy, less, whole, whole)]
        rounds.append(Round(judgement, steps[0], steps[1], tuple(steps[2:])))
    return Measured(program, rounds)


@pytest.mark.torch
@pytest.mark.slow
def test_a_recording_is_held_against_what_is_known(program: LossyProgram) -> None:
    judgement = judged_recording(program, "tidy_profile")
    assert judgement.is_named("values_read")
    assert [each.rule for each in judgement.naming("values_read")] == ["host-sync-scalar-readback"]
    assert not judgement.is_named("never_said")
    said = {each.rule for each in judgement.findings} - {"host-sync-scalar-readback", "zero-grad-memset"}
    assert {each.rule for each in judgement.unexplained} == said
    assert judgement.step_ns > 0


def test_a_finding_names_a_loss_by_its_rule_and_its_function(program: LossyProgram) -> None:
    reads, fills, never = program.losses
    assert names(program, finding("host-sync-scalar-readback", READS), reads)
    assert names(program, finding("host-sync-scalar-readback", READS - 1), reads), "the definition of the function"
    assert not names(program, finding("host-sync-scalar-readback", STEP), reads), "elsewhere"
    assert not names(program, finding("host-sync-scalar-readback", READS, "/job/other.py"), reads)
    assert not names(program, finding("zero-grad-memset", READS), reads), "another fix"
    assert names(program, finding("zero-grad-memset", STEP), fills)
    assert not names(program, finding("zero-grad-memset", STEP), never)


def test_only_the_first_findings_count(program: LossyProgram) -> None:
    others = [finding("cat-in-loop", at) for at in range(FIRST)]
    late = judgement_of(program, *others, finding("zero-grad-memset", STEP))
    assert not late.is_named("gradients_filled")
    assert why_not(late, program.losses[1]) == f"said, but at place {FIRST + 1}"
    assert judgement_of(program, *others[1:], finding("zero-grad-memset", STEP)).is_named("gradients_filled")


def test_the_reason_is_that_of_the_report(program: LossyProgram) -> None:
    silent = judgement_of(program)
    said = replace(silent, reasons={"zero-grad-memset": "2 are too small.", "cat-in-loop": "of no concern"})
    assert why_not(said, program.losses[1]) == "`zero-grad-memset`: 2 are too small."
    assert why_not(silent, program.losses[1]) == "`zero-grad-memset` found nothing there"
    assert why_not(silent, program.losses[2]) == "no rule looks for it"


def test_what_is_said_besides_is_counted_as_wrong(program: LossyProgram) -> None:
    wrong = finding("cat-in-loop", STEP)
    judgement = judgement_of(program, wrong, finding("zero-grad-memset", STEP))
    text = counted_section([(replace(judgement, unexplained=(wrong,)), judgement)])
    assert text.startswith(COUNTED_HEADING)
    assert "| losses named among the first 5 findings | 33.3 % (1 of 3) | 33.3 % (1 of 3) |" in text
    assert "| of those that a rule looks for | 50 % (1 of 2) | 50 % (1 of 2) |" in text
    assert "| 50 % (1 of 2) | 100 % (2 of 2) |" in text
    assert "| small | Gradients are filled | `zero-grad-memset` (2.) | `zero-grad-memset` (2.) |  |" in text
    assert "- small: `cat-in-loop` in `f`: cat-in-loop is said." in text


def test_savings_of_all_findings_that_name_a_loss_are_promised(program: LossyProgram) -> None:
    both = judgement_of(program, finding("zero-grad-memset", STEP), finding("zero-grad-memset", STEP, saved_ns=3 * MS))
    assert promised(both, "gradients_filled") == Promise(10 * MS, 4 * MS, 8 * MS)
    assert promised(both, "values_read") is None


def test_a_saving_counts_where_it_stands_clear_of_the_copy(program: LossyProgram) -> None:
    clear = measured(program, [1.0, 1.0], [1.04, 0.95], [0.9, 0.94])
    assert clear.noise == pytest.approx(0.05)
    assert [clear.is_clear(loss.name) for loss in program.losses] == [True, False, False]
    assert not measured(program, [1.0, 1.0], [1.04, 0.95], [0.9, 0.96]).is_clear("values_read"), (
        "in one round it is not"
    )


def test_recall_is_of_savings_that_are_clear_and_worth_it(program: LossyProgram) -> None:
    text = timed_section([measured(program, [1.0, 1.0], [1.01, 1.0], [0.8, 0.8])], 2)
    assert text.startswith(TIMED_HEADING)
    assert "Named: 100 % (1 of 1)" in text
    assert "median error is 12.5 %" in text, "90 % was to remain, and 80 % did"
    assert "| `small/values_read` | 1.25 | 900.00 | 800.00 | +12 % | 20 % | 10 % | 20 % | yes | 1 % | yes |" in text
    assert "Not clear of the noise: `small/gradients_filled`, `small/never_said`." in text
    assert "Named: – (0 of 0)" in timed_section([measured(program, [1.0], [1.0], [0.97])], 1), "3 % is not worth it"
