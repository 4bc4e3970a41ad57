"""Every figure of one recording is the same in its report, which Overview shows, and in a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.compare.compare import compared
from tb_tidy_plugin.compare.reading import asked_for
from tb_tidy_plugin.dev.generate import ROOT
from tests.support.recordings import shared
from tests.support.written import event, kineto_text, write

SAMPLES = ("image_classifier_untidy", "image_classifier_tidy", "text_generation_eval")
SHARED = (
    "v100_2021_resnet50_workers0",
    "v100_2021_resnet50_workers4",
    "cpu_gloo_rank34",
    "b200_eager",
    "v100_dlrm_8ranks",
)


def warming_up(folder: Path) -> Path:
    """A first step of 9 ms, then six of 2 ms, with gaps between them; each holds one product."""
    events, at = [], 1000
    for step in range(7):
        length = 9000 if step == 0 else 2000 + step
        events.append(event(f"ProfilerStep#{step}", at, length, cat="user_annotation"))
        events.append(event("aten::mm", at + 100, length - 300, args={"External id": step}))
        at += length + 150
    folder.mkdir()
    write(folder / "w.7.pt.trace.json", kineto_text(events))
    return folder


@pytest.fixture(params=["warming up", *SAMPLES, *SHARED])
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "warming up":
        return warming_up(tmp_path / "run")
    return ROOT / "sample_runs" / request.param if request.param in SAMPLES else shared(f"traces/{request.param}")


def test_steps_entries_and_costs_are_those_of_the_report(recorded: Path) -> None:
    asked = asked_for(recorded, Job())
    one = asked.recordings[0]
    side = replace(asked, recordings=[one], of_runs=())
    comparison = compared(side, side)
    ledger = one.report.ledger
    for shown in (comparison.base, comparison.candidate):
        assert (shown.median_ns, shown.steps) == (ledger.step_ns.median, ledger.step_ns.n)
    assert comparison.ledger is not None
    assert comparison.ledger.base_step_ns == ledger.step_ns.mean
    entries = {each.id: each.base_ns for each in comparison.ledger.entries}
    for entry in ledger.entries:
        assert abs(entries[entry.id] - entry.ns_per_step) <= 1, "whole ns that add up to the mean"
    costs = {each.id: each.base_ns for each in comparison.findings}
    assert costs == {each.id: each.cost_ns for each in one.report.findings}
