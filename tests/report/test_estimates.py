"""What a report says of replayed savings: residual, joint saving, confidence, quality."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.estimate.saving import Estimates
from tb_tidy_plugin.report.assemble import checked
from tb_tidy_plugin.report.findings import less_sure
from tb_tidy_plugin.report.model import ProfileReport
from tb_tidy_plugin.report.paths import analyze_path
from tb_tidy_plugin.report.quality import quality_of
from tb_tidy_plugin.rulekit.testing.drawn import draw_into
from tests.support.drawn import A100, draw
from tests.support.made_up_rule import SlowMultiplication

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
    return analyze_path(folder, [SlowMultiplication()]).runs[0].profiles[0]


def test_findings_together_save_less_than_the_sum_where_they_overlap(tmp_path: Path) -> None:
    report = report_of(tmp_path, OVERLAPPING)
    assert report.residual == 0
    savings = [finding.saving.expected_ns for finding in report.findings if finding.saving]
    assert savings == [400 * US, 200 * US]
    assert report.joint_saving is not None
    assert report.joint_saving.expected_ns == 400 * US
    assert report.joint_saving.basis == ["replayed"]
    assert report.joint_saving.speedup == pytest.approx(1000 / 600)


def test_nothing_found_has_nothing_to_save_together(tmp_path: Path) -> None:
    report = report_of(tmp_path, "ProfilerStep#1  0-100\n  aten::add  10-20  dims=4  types=float")
    assert report.joint_saving is None
    assert msgspec.json.decode(msgspec.json.encode(report))["residual"] == 0


def test_waiting_that_nothing_explains_makes_findings_unsure() -> None:
    """The kernel begins 700 µs after its launch although its stream is free."""
    text = "ProfilerStep#1  0-1000\n  aten::mm  10-20  kernel=gemm@15-25  dims=4x4,4x4  types=float,float\n"
    text += "  aten::mm  100-110  kernel=gemm@800-950  dims=4x4,4x4  types=float,float"
    profile = draw(text, A100)
    estimates = Estimates(profile)
    assert estimates.unexplained == pytest.approx(0.7, abs=0.03)
    assert estimates.confidence == "low"
    _, (evidence,) = checked(profile, [SlowMultiplication()])
    assert evidence.finding.confidence == "low"
    assert any("waits for something that is not recorded" in note for note in quality_of(profile, estimates).notes)


def test_a_recording_of_many_short_operators_says_what_recording_takes() -> None:
    text = "ProfilerStep#1  0-1000\n" + "".join(f"  aten::add  {at}-{at + 2}\n" for at in range(1, 990, 4))
    profile = draw(text)
    assert any(
        note.startswith("Recording itself takes about 1") for note in quality_of(profile, Estimates(profile)).notes
    )


def test_the_least_confidence_counts() -> None:
    assert less_sure("high", "medium") == "medium"
    assert less_sure("low", "high") == "low"
