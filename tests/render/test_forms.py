"""Every form says the same of a report, also that there are two clocks.

Costs are then parts of recorded steps, and savings parts of a step without the profiler.
"""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.summary import ProfileSummary, Summary, summary_of
from tb_tidy_plugin.cli.output import as_text
from tb_tidy_plugin.ledger.advice import bound_by
from tb_tidy_plugin.render.document import Form
from tb_tidy_plugin.render.ledger import MOST_LINES
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.summary import SummaryOptions, summary_document
from tb_tidy_plugin.render.words import LEAST_SHARE
from tb_tidy_plugin.report.model import Outcome, Problem, Report
from tb_tidy_plugin.report.sarif import to_sarif
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication
from tests.support.measurements import measurement
from tests.support.recordings import ROOT

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
    return changed(one_clock, true_step_ns=345_000, step_ns=345_000)


@cache
def sample() -> Report:
    """Of a sample run, with the lines of its program."""
    folder = ROOT / "sample_runs" / "image_classifier_untidy"
    return analyze_path(folder, Job(source_roots=(folder,)))


def changed(report: Report, **fields: object) -> Report:
    """The report with fields of its profile set."""
    (run,) = report.runs
    profile = msgspec.structs.replace(run.profiles[0], **fields)
    return msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, profiles=[profile])])


def shown(report: Report, form: Form) -> str:
    """The text that a reader sees, on one line."""
    text = html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", as_text(report_document(report, form), form)))
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("form", FORMS)
class TestOneWording:
    """A sentence about a finding or a profile is the same wherever it is read, and no form leaves it out."""

    def test_of_an_owner(self, form: Form) -> None:
        """As in JSON; `tests/ask/test_answers.py` and `tests/browser/test_tab.py` check the other surfaces."""
        report = sample()
        entries = [each for each in report.runs[0].profiles[0].ledger.entries if each.share >= LEAST_SHARE]
        assert sum(bool(entry.owner.line and entry.owner.operator) for entry in entries) > 2
        text = re.sub(r"\W", "", shown(report, form))
        for entry in entries[:MOST_LINES]:
            assert re.sub(r"\W", "", f"{entry.title}{entry.owner.name}") in text

    def test_of_a_finding(self, one_clock: Report, form: Form) -> None:
        finding = one_clock.runs[0].profiles[0].findings[0]
        full = msgspec.structs.replace(finding, known_by="donor", measurement=measurement(doubts=("It was busy.",)))
        text = shown(changed(one_clock, findings=[full]), form).lower().replace("`", "")
        for sentence in (
            "multiplies 16 B.",
            "It ran for longer than 1 µs.",
            "Add instead.",
            "1 µs before, 500 ns after: 0.5 times (0.4 to 0.6, 95 %) on cpu",
            "It was busy.",
            "operators from the graph's capture (by an eager iteration)",
            "micro-benchmark",
            f"made-up-rule {finding.id}",
        ):
            assert sentence.lower() in text

    def test_without_findings(self, one_clock: Report, form: Form) -> None:
        ledger = one_clock.runs[0].profiles[0].ledger
        assert f"No finding. {bound_by(ledger.entries)}" in shown(changed(one_clock, findings=[]), form)
        unchecked = [Outcome(rule="made-up-rule", status="not_checked", reason="No `stacks`.")]
        text = shown(changed(one_clock, findings=[], outcomes=unchecked), form)
        assert (
            f"Nothing could be checked: this recording lacks what the checks need. {bound_by(ledger.entries)}" in text
        )

    def test_of_a_recording_that_raises_doubts(self, one_clock: Report, form: Form) -> None:
        quality = msgspec.structs.replace(one_clock.runs[0].profiles[0].quality, notes=["Half of it is missing."])
        assert "Half of it is missing." in shown(changed(one_clock, quality=quality), form)

    def test_of_what_could_not_be_read(self, one_clock: Report, form: Form) -> None:
        problem = Problem(path="run/w.json", error="It is empty.", advice="Record again.", recovered_events=0)
        text = shown(msgspec.structs.replace(one_clock, problems=[problem]), form).replace("`", "").replace(" :", ":")
        assert "run/w.json: It is empty. Record again." in text


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
