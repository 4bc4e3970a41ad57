"""What a terminal shows: one of a thing and several, names that are long, and nothing that it would obey."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin import __version__
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.analysis.summary import summary_of
from tb_tidy_plugin.cli.printed import as_lines
from tb_tidy_plugin.compare.model import Comparison, OperatorChange, Side
from tb_tidy_plugin.render.comparison import comparison_document
from tb_tidy_plugin.render.document import Document
from tb_tidy_plugin.render.report import (
    MOST_OUTLIERS_ON_SCREEN,
    MOST_PLACES_ON_SCREEN,
    MOST_RULES_ON_SCREEN,
    report_document,
)
from tb_tidy_plugin.render.summary import SummaryOptions, summary_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.report.figures import OperatorGroup
from tb_tidy_plugin.report.model import Outcome, Problem, ProfileReport, Report
from tb_tidy_plugin.report.step_model import Outlier
from tests.fuzz.pipeline import OBEYED
from tests.support.logdirs import trace
from tests.support.made_up_rule import SlowMultiplication

STEERING = "a\x1b[2Jb\u202ec"


@pytest.fixture
def report(tmp_path: Path) -> Report:
    trace(tmp_path / "run" / "rank0.7.pt.trace.json", operators=9)
    return analyze_path(tmp_path, Job([SlowMultiplication()]))


def lines(document: Document) -> str:
    return as_lines(to_text(document))


def changed(report: Report, **fields: object) -> str:
    """The report with fields of its profile set, as a terminal shows it."""
    run = report.runs[0]
    profile: ProfileReport = msgspec.structs.replace(run.profiles[0], **fields)
    shown = msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, profiles=[profile])])
    return lines(report_document(shown, "text"))


def test_a_report(report: Report) -> None:
    (finding,) = report.runs[0].profiles[0].findings
    outcomes = [
        Outcome(rule="a-rule", status="clean"),
        Outcome(rule="b-rule", status="clean"),
        Outcome(rule="c-rule", status="not_checked", reason="Record with `with_stack=True`."),
        Outcome(rule="d-rule", status="not_checked", reason="Record with `with_stack=True`."),
        Outcome(rule="e-rule", status="failed", reason="KeyError: 1"),
        Outcome(rule="f-rule", status="found", reason="1 in `x.py` is ignored."),
    ]
    assert (
        changed(report, outcomes=outcomes)
        == f"""\
run · rank0 · 7 · rank 0
  1 step of 1 ms (marked by the profiler)
  99.2 %    992 µs  CPU: Python between operators: helper in ../../outside.py · 1 call (87.9 % of
  it)
    → Vectorise it, or move it out of the step.
  13 events over 1 ms on the CPU; recorded: stacks, shapes, steps

  ● Add instead                                                                     8.06 µs per step
    `aten::mm` multiplies 16 B.
    ../../outside.py:1 in helper; the recording contains the function, not the
    calling line
    9×, costs 8.06 µs per step (0.81 %); saves about 8.06 µs, at least 5.36 µs
    (computed from the timeline); confidence high
    why: It ran for longer than 1 µs.
    fix: Add instead.
    made-up-rule {finding.id}

  passed: a-rule, b-rule
  not checked: c-rule, d-rule: Record with `with_stack=True`.
  failed: e-rule: KeyError: 1
  f-rule: 1 in `x.py` is ignored.

"""
    )


def test_a_findings_title_is_the_action(report: Report) -> None:
    (finding,) = report.runs[0].profiles[0].findings
    shown = changed(report, findings=[msgspec.structs.replace(finding, action="Add both matrices")])
    assert "● Add both matrices  " in shown
    assert "fix: Add instead" in shown


def test_many_rules_are_counted_unless_all_names_are_wanted(report: Report) -> None:
    names = [f"rule-{number}" for number in range(MOST_RULES_ON_SCREEN + 1)]
    passed = [Outcome(rule=name, status="clean") for name in names]
    skipped = [Outcome(rule=name, status="not_checked", reason="Record shapes.") for name in names]
    run = report.runs[0]
    profile = msgspec.structs.replace(run.profiles[0], outcomes=[*passed, *skipped])
    shown = msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, profiles=[profile])])
    text = lines(report_document(shown, "text"))
    assert f"passed: {len(names)} rules (`-v` names them)" in text
    assert f"not checked: {len(names)} rules (`-v` names them): Record shapes." in text
    verbose = " ".join(lines(report_document(shown, "text", verbose=True)).split())
    assert f"passed: {', '.join(names)} not checked: {', '.join(names)}: Record shapes." in verbose


def test_small_findings_take_a_line_each_below_the_others(report: Report) -> None:
    (small,) = report.runs[0].profiles[0].findings
    assert small.small
    large = msgspec.structs.replace(small, message="It is large", small=False)
    second = msgspec.structs.replace(small, action="Do it once")
    run = report.runs[0]
    profile = msgspec.structs.replace(run.profiles[0], findings=[large, small, second])
    shown = msgspec.structs.replace(report, runs=[msgspec.structs.replace(run, profiles=[profile])])
    text = lines(report_document(shown, "text"))
    assert text.count("fix: Add instead") == 1
    assert text.index("It is large") < text.index("2 small findings, together 1.61 % of a step (`-v` shows")
    assert "    ../../outside.py:1 in helper: Do it once (8.06 µs; made-up-rule)" in text
    verbose = lines(report_document(shown, "text", verbose=True))
    assert (verbose.count("fix: Add instead"), "small findings" in verbose) == (3, False)


@pytest.mark.parametrize(("left_out", "said"), [(0, ""), (1, "and 1 more place\n"), (1200, "and 1,200 more places\n")])
def test_places_that_do_not_fit_are_counted(report: Report, left_out: int, said: str) -> None:
    finding = report.runs[0].profiles[0].findings[0]
    places = finding.places * (MOST_PLACES_ON_SCREEN + left_out)
    text = changed(report, findings=[msgspec.structs.replace(finding, places=places)])
    assert said in text
    assert ("more place" in text) == (left_out > 0)


@pytest.mark.parametrize(("left_out", "said"), [(1, "and 1 more outlier\n"), (2, "and 2 more outliers\n")])
def test_outliers_that_do_not_fit_are_counted(report: Report, left_out: int, said: str) -> None:
    outlier = Outlier(step=0, name="1", duration_ns=2, median_ns=1, causes=[], text="Step 1 took long.")
    assert said in changed(report, outliers=[outlier] * (MOST_OUTLIERS_ON_SCREEN + left_out))


def test_rules_and_what_could_not_be_read_do_not_steer_it(report: Report) -> None:
    finding = msgspec.structs.replace(report.runs[0].profiles[0].findings[0], rule=STEERING, id=STEERING)
    outcomes = [Outcome(rule=STEERING, status=status, reason=STEERING) for status in ("clean", "not_checked", "failed")]
    problem = Problem(path=STEERING, error=STEERING, advice=STEERING, recovered_events=0)
    text = changed(msgspec.structs.replace(report, problems=[problem]), findings=[finding], outcomes=outcomes)
    assert text.count("a\ufffd[2Jb\ufffdc") == 2 + 2 * len(outcomes) + 3
    assert not OBEYED.search(text)


@pytest.mark.parametrize(
    ("group", "title"), [("name", "operator"), ("shape", "operator"), ("line", "source line"), ("module", "module")]
)
def test_a_column_is_named_after_what_its_rows_are(tmp_path: Path, group: OperatorGroup, title: str) -> None:
    trace(tmp_path / "run" / "w.7.pt.trace.json", operators=9)
    summary = summary_of(tmp_path, Job())
    profile = summary.profiles[0]
    rows = profile.figures.operators["name"]
    figures = msgspec.structs.replace(profile.figures, operators={group: rows})
    shown = msgspec.structs.replace(summary, profiles=[msgspec.structs.replace(profile, figures=figures)])
    heading = lines(summary_document(shown, SummaryOptions(group))).partition("Operators by ")[2].splitlines()[1]
    assert heading.split("  ")[1].strip() == title


def comparison(*operators: OperatorChange) -> Comparison:
    side = Side(path="a", runs=["a"], profiles=1, steps=1, median_ns=1, chosen="")
    return Comparison(
        schema=1, version=__version__, base=side, candidate=side, verdict="no_clear_difference", step_ratio=None,
        notes=[], predicted_ns=0, realised_ns=None, findings=[], operators=list(operators), kernels=[],
        settings=[],
    )  # fmt: skip


def test_one_step_is_one() -> None:
    assert "(1 profile, 1 step, median 1 ns)" in lines(comparison_document(comparison(), "text"))


def test_long_shapes_leave_room_for_the_name() -> None:
    row = OperatorChange(
        name="aten::scaled_dot_product_attention", shapes="888×8×64, " * 12, base_calls=1, candidate_calls=1,
        base_ns=1_110_000, candidate_ns=2_220_000, base_device_ns=None, candidate_device_ns=None,
    )  # fmt: skip
    shown = lines(comparison_document(comparison(row), "text")).partition("operator ")[2]
    assert "aten::scaled_dot_product_attention" in shown
    assert "…" in shown
    assert len(shown.splitlines()) <= 3
