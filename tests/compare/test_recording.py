"""Which steps of a recording count, and what its findings cost in them."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import Asked, compared
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.compare.recording import Chosen, StepRange, StepsError, chosen_steps, numbers_of, step_range
from tb_tidy_plugin.dev.generate import ROOT


@cache
def untidy() -> Asked:
    return asked_for(ROOT / "sample_runs" / "image_classifier_untidy", Job())


@pytest.mark.parametrize(
    ("text", "wanted"), [("3-7", StepRange(3, 7)), ("5", StepRange(5, 5)), ("0-0", StepRange(0, 0))]
)
def test_ranges(text: str, wanted: StepRange) -> None:
    assert step_range(text) == wanted


@pytest.mark.parametrize("text", ["", "7-3", "-3", "3-", "a-b", "3-7-9", "1" * 40, "٣"])
def test_what_is_no_range_is_said(text: str) -> None:
    with pytest.raises(StepsError, match="3-7"):
        step_range(text)


def test_steps_are_named_by_the_numbers_that_end_their_names() -> None:
    [recording] = untidy().recordings
    names = [step.name for step in recording.report.steps.items]
    assert [f"ProfilerStep#{number}" for number in numbers_of(recording)] == names


def test_only_steps_in_the_range_count() -> None:
    [recording] = untidy().recordings
    numbers = numbers_of(recording)
    [side] = chosen_steps([recording], StepRange(numbers[1], numbers[2]), "x")
    ledger = recording.report.ledger
    assert side.durations_ns == [step.end_ns - step.start_ns for step in ledger.steps[1:3]]
    assert side.host_ns == [step.duration_ns for step in recording.report.steps.items[1:3]]


def test_steps_that_are_not_there_are_said() -> None:
    with pytest.raises(StepsError, match=r"`x` has no steps 900-901. It has the steps \d+-\d+."):
        chosen_steps(untidy().recordings, StepRange(900, 901), "x")


def test_findings_cost_what_they_cost_in_these_steps() -> None:
    """The mean over single steps is the cost over all; promises are in proportion."""
    [recording] = untidy().recordings
    count = recording.report.steps.count
    for finding in recording.report.findings:
        alone = [found for at in range(count) for found in Chosen(recording, (at,)).findings if found.id == finding.id]
        assert sum(found.cost_ns for found in alone) / count == pytest.approx(finding.cost_ns, abs=2)
        for found in alone:
            assert found.saving is not None
            assert finding.saving is not None
            promised = finding.saving.expected_ns / finding.cost_ns
            assert found.saving.expected_ns == pytest.approx(found.cost_ns * promised, abs=2)


def test_steps_of_one_recording_against_each_other() -> None:
    [recording] = untidy().recordings
    first, *_, last = numbers_of(recording)
    comparison = compared(
        replace(untidy(), steps=StepRange(first, first)), replace(untidy(), steps=StepRange(last, last))
    )
    assert (comparison.base.steps, comparison.candidate.steps) == (1, 1)
    ledger = recording.report.ledger
    first_ns, *_, last_ns = [step.end_ns - step.start_ns for step in ledger.steps]
    assert comparison.realised_ns == first_ns - last_ns
    assert comparison.ledger is not None
    assert (comparison.ledger.base_step_ns, comparison.ledger.candidate_step_ns) == (first_ns, last_ns)
    for entry in ledger.entries:
        entries = next(each for each in comparison.ledger.entries if each.id == entry.id)
        assert (entries.base_ns, entries.candidate_ns) == (entry.ns_by_step[0], entry.ns_by_step[-1])
