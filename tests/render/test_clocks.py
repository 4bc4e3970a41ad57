"""Two clocks: costs are parts of recorded steps, savings of a step without the profiler, and every format says so."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.summary import ProfileSummary, Summary, summary_of
from tb_tidy_plugin.cli.output import as_text
from tb_tidy_plugin.render.document import Form
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.summary import SummaryOptions, summary_document
from tb_tidy_plugin.report.model import Report
from tb_tidy_plugin.report.sarif import to_sarif
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication

FORMS: tuple[Form, ...] = ("text", "markdown", "html")
RECORDED, TRUE = "1 ms", "345 µs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trace(tmp_path / "run" / "rank0.7.pt.trace.json", operators=9)
    return tmp_path


@pytest.fixture
def one_clock(folder: Path) -> Report:
    return analyze_path(folder, Job([SlowMultiplication()]))


@pytest.fixture
def two_clocks(one_clock: Report) -> Report:
    """The same recorded with `tidy_profile`, which timed steps without the profiler."""
    (run,) = one_clock.runs
    (profile,) = run.profiles
    profile = msgspec.structs.replace(profile, true_step_ns=345_000, step_ns=345_000)
    return msgspec.structs.replace(one_clock, runs=[msgspec.structs.replace(run, profiles=[profile])])


def shown(report: Report, form: Form) -> str:
    """The text that a reader sees, on one line."""
    text = html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", as_text(report_document(report, form), form)))
    return re.sub(r"\s+", " ", text)


class TestReports:
    @pytest.mark.parametrize("form", FORMS)
    def test_both_steps_are_printed(self, two_clocks: Report, form: Form) -> None:
        text = shown(two_clocks, form)
        assert RECORDED in text
        assert re.search(rf"recorded; ({TRUE} without the profiler|without the profiler {TRUE})", text)

    @pytest.mark.parametrize(
        ("form", "cost", "saving"),
        [
            ("text", "costs 8.06 µs per recorded step", "without the profiler, saves about 8.06 µs"),
            ("markdown", "costs per recorded step", "could save without the profiler"),
            ("html", "of the recorded step time", "Of a step without the profiler"),
        ],
    )
    def test_each_figure_of_a_finding_has_its_clock(
        self, two_clocks: Report, form: Form, cost: str, saving: str
    ) -> None:
        text = shown(two_clocks, form)
        assert cost in text
        assert saving in text

    def test_in_sarif(self, two_clocks: Report) -> None:
        (result,) = json.loads(to_sarif(two_clocks, [SlowMultiplication]))["runs"][0]["results"]
        assert "Costs 8.06 µs per recorded step" in result["message"]["text"]
        assert "Could save about 8.06 µs per step without the profiler" in result["message"]["text"]

    @pytest.mark.parametrize("form", FORMS)
    def test_with_one_clock_nothing_is_said(self, one_clock: Report, form: Form) -> None:
        text = shown(one_clock, form)
        assert "without the profiler" not in text
        assert "recorded step" not in text


def test_the_summary_prints_both_steps(folder: Path, two_clocks: Report) -> None:
    (found,) = summary_of(folder, Job([SlowMultiplication()])).profiles
    profiles = [ProfileSummary(run="run", report=two_clocks.runs[0].profiles[0], figures=found.figures)]
    summary = Summary(schema=1, version=__version__, profiles=profiles, problems=[])
    text = as_text(summary_document(summary, SummaryOptions()), "text")
    assert re.search(rf"1 step of {RECORDED} .*recorded;\s+{TRUE} without the profiler", text, re.DOTALL)
