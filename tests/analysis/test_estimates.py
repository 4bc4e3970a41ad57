"""What a report says of replayed savings: residual, joint saving, confidence, quality."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.analysis.assemble import checked
from tb_tidy_plugin.analysis.findings import _beyond_cost, less_sure
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.quality import quality_of
from tb_tidy_plugin.estimate.saving import SavingEstimates
from tb_tidy_plugin.report.model import Note, ProfileReport
from tb_tidy_plugin.rulekit import Match
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.units import Bytes, Nanoseconds
from tests.support.made_up_rule import Evidence, SlowMultiplication
from tests.support.recordings import ROOT

US = 1000
OVERLAPPING = """
ProfilerStep#1            0-1000
  train.py(10): step      1-999
    aten::mm              100-500  dims=4x4,4x4  types=float,float
      train.py(30): inner 150-450
        aten::mm          200-400  dims=8x8,8x8  types=float,float
"""


def report_of(folder: Path, text: str) -> ProfileReport:
    draw_into(folder, text)
    return analyze_path(folder, Job([SlowMultiplication()])).runs[0].profiles[0]


def test_findings_together_save_less_than_the_sum_where_they_overlap(tmp_path: Path) -> None:
    report = report_of(tmp_path, OVERLAPPING)
    assert report.residual == 0
    savings = [finding.saving.expected_ns for finding in report.findings if finding.saving]
    assert savings == [400 * US, 200 * US]
    assert report.joint_saving is not None
    assert report.joint_saving.expected_ns == 400 * US
    assert report.joint_saving.basis == ["replayed"]
    assert report.joint_saving.speedup == pytest.approx(1000 / 600)


def test_what_saves_more_than_it_costs_says_what_else_goes(tmp_path: Path) -> None:
    """Each of three products is followed by 50 µs in which nothing runs: 48 more than elsewhere, where 2 are usual."""
    pair = "  aten::mm  {0}00-{1}00  dims=4x4,4x4  types=float,float\n  aten::add  {1}50-{1}98\n"
    text = "".join(pair.format(at, at + 1) for at in (1, 3, 5)) + "".join(
        f"  aten::add  {at}-{at + 8}\n" for at in range(700, 900, 10)
    )
    (finding,) = report_of(tmp_path, f"ProfilerStep#1  0-1000\n{text}").findings
    assert finding.saving is not None
    assert finding.saving.expected_ns == finding.cost_ns + 3 * 48 * US
    texts = [detail.text for detail in finding.details if isinstance(detail, Note)]
    assert texts[1].startswith("The fix saves 144 µs more than the pattern costs, because freeing its memory")


def test_a_wait_frees_no_memory_but_the_rest_runs_faster_after_it() -> None:
    profile = draw("ProfilerStep#1 0-100\n  aten::add 10-20")
    waits = [Match(1, (1,), Evidence("aten::add", Bytes(4), Nanoseconds(1)), lost=((10, 20),))]
    [note] = _beyond_cost(profile, waits, 5 * US)
    assert note.text.endswith(" more than the pattern costs, because the rest runs faster after shorter waits.")


@pytest.mark.parametrize("path", sorted((ROOT / "sample_runs").glob("*/*.gz")), ids=lambda path: path.parent.name)
def test_no_finding_of_the_sample_runs_saves_more_than_it_costs_without_a_word(path: Path) -> None:
    for finding in analyze_path(path, Job()).runs[0].profiles[0].findings:
        texts = [detail.text for detail in finding.details if isinstance(detail, Note)]
        says_more = any("more than the pattern costs" in text for text in texts)
        assert finding.saving is not None
        assert says_more == (finding.saving.expected_ns > finding.cost_ns), finding.rule


def test_nothing_found_has_nothing_to_save_together(tmp_path: Path) -> None:
    report = report_of(tmp_path, "ProfilerStep#1  0-100\n  aten::add  10-20  dims=4  types=float")
    assert report.joint_saving is None
    assert decode(msgspec.json.encode(report))["residual"] == 0


def test_waiting_that_nothing_explains_makes_findings_unsure() -> None:
    """The kernel begins 700 µs after its launch although its stream is free."""
    text = "ProfilerStep#1  0-1000\n  aten::mm  10-20  kernel=gemm@15-25  dims=4x4,4x4  types=float,float\n"
    text += "  aten::mm  100-110  kernel=gemm@800-950  dims=4x4,4x4  types=float,float"
    profile = draw(text, A100)
    estimates = SavingEstimates(profile)
    assert estimates.unexplained == pytest.approx(0.7, abs=0.03)
    assert estimates.confidence == "low"
    _, (evidence,) = checked(profile, [SlowMultiplication()])
    assert evidence.finding.confidence == "low"
    assert any("the replay finds nothing" in note for note in quality_of(profile, estimates).notes)


def test_a_recording_of_many_short_operators_says_what_recording_takes() -> None:
    text = "ProfilerStep#1  0-1000\n" + "".join(f"  aten::add  {at}-{at + 2}\n" for at in range(1, 990, 4))
    profile = draw(text)
    assert any(
        note.startswith("Recording takes about 1") for note in quality_of(profile, SavingEstimates(profile)).notes
    )


def test_the_least_confidence_counts() -> None:
    assert less_sure("high", "medium") == "medium"
    assert less_sure("low", "high") == "low"
