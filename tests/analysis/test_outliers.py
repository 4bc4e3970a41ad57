"""An unusual step is reported with what it holds that the others do not."""

from __future__ import annotations

from pathlib import Path

from tb_tidy_plugin.analysis.assemble import read_file
from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.outliers import MOST_OUTLIERS, outliers_of
from tb_tidy_plugin.analysis.step_costs import step_costs_of
from tb_tidy_plugin.ledger.account import account_of
from tb_tidy_plugin.report.step_model import Outlier, OutlierCause, StepItem, Steps
from tb_tidy_plugin.rulekit import Profile
from tb_tidy_plugin.rulekit.testing import A100, draw
from tb_tidy_plugin.trace.files import find_traces
from tests.support.step_recordings import recording

MS = 1_000_000
NO_LEDGER = account_of(draw("ProfilerStep#0  0-100")).ledger
"""Of other steps than those of the tests."""


def told(drawn: str) -> list[Outlier]:
    """The outliers of a drawn profile."""
    return told_of(draw(drawn))


def told_of(profile: Profile) -> list[Outlier]:
    items = [
        StepItem(name=step.name, start_ns=step.start_ns, duration_ns=step.duration_ns, oddity=oddity)
        for step, oddity in zip(profile.steps.items, profile.steps.oddities, strict=True)
    ]
    steps = Steps(basis=profile.steps.basis, count=len(items), median_ns=profile.steps.median_ns, items=items)
    return outliers_of(steps, account_of(profile).ledger, step_costs_of(profile))


ORDINARY = """
ProfilerStep#0      0-1000
  aten::mm        100-600
ProfilerStep#1  1001-2001
  aten::mm      1101-1601
ProfilerStep#2  2002-3002
  aten::mm      2102-2602
"""


def steps(odd: str = "") -> str:
    """Three ordinary steps of 1 ms with a product each, then an odd one."""
    return ORDINARY + odd


def of_kind(outlier: Outlier, kind: str) -> list[OutlierCause]:
    return [cause for cause in outlier.causes if cause.kind == kind]


def test_ordinary_steps_are_none() -> None:
    assert told(steps()) == []


def test_an_operator_that_is_called_once_more() -> None:
    [outlier] = told(
        steps("ProfilerStep#3  3003-5003\n  aten::mm  3103-3603\n  aten::mm  3703-4503\n  aten::add  4504-4513\n")
    )
    assert (outlier.step, outlier.name) == (3, "ProfilerStep#3")
    assert (outlier.duration_ns, outlier.median_ns) == (2 * MS + 1000, 1 * MS + 1000)
    [cause] = of_kind(outlier, "operator")
    assert (cause.name, cause.calls, cause.usual_calls) == ("aten::mm", 2, 1)
    assert (cause.time_ns, cause.usual_ns) == (1_300_000, 500_000)
    assert outlier.text.startswith("ProfilerStep#3 took 2 ms, 1 ms longer than the median step: ")
    assert "`aten::mm` 800 µs more (2 calls instead of 1)" in outlier.text


def test_a_wait_for_data() -> None:
    [outlier] = told(
        steps("ProfilerStep#3  3003-5003\n  enumerate(DataLoader)#x.__next__  3003-4003\n  aten::mm  4103-4603\n")
    )
    [wait], [entry, _] = of_kind(outlier, "wait"), of_kind(outlier, "entry")
    assert (wait.name, wait.title, wait.calls) == ("data_loading", "waiting for data", None)
    assert (wait.time_ns, wait.usual_ns) == (1 * MS, 0)
    assert (entry.name, entry.time_ns, entry.usual_ns) == ("The step waits for data", 1 * MS, 0)
    assert "“The step waits for data” 1 ms more" in outlier.text
    assert "waiting for data 1 ms more" in outlier.text
    assert of_kind(outlier, "operator") == []


def test_a_step_whose_mark_alone_is_short_is_none() -> None:
    """The host runs ahead of the device in the last step: the device takes as long as in the others."""
    lines = [
        f"ProfilerStep#{at} {1001 * at}-{1001 * at + length}\n  aten::mm {1001 * at + 10}-{1001 * at + 20} "
        f"kernel=gemm@{1001 * at + 30}-{1001 * at + 1020}"
        for at, length in enumerate((1000, 1000, 1000, 300))
    ]
    profile = draw("\n".join(lines), A100)
    assert profile.steps.oddities == (None, None, None, "outlier")
    assert told_of(profile) == []


def test_a_step_that_is_shorter_holds_less() -> None:
    [outlier] = told(steps("ProfilerStep#3  3003-3403\n  aten::add  3103-3113\n"))
    [cause] = of_kind(outlier, "operator")
    assert (cause.name, cause.calls, cause.usual_calls, cause.time_ns) == ("aten::mm", 0, 1, 0)
    assert "600 µs shorter" in outlier.text
    assert "`aten::mm` 500 µs less (0 calls instead of 1)" in outlier.text


def test_a_step_that_nothing_explains_says_so() -> None:
    costs = step_costs_of(draw(steps()))
    items = [
        StepItem(name=f"ProfilerStep#{at}", start_ns=at, duration_ns=time, oddity="outlier" if at == 2 else None)
        for at, time in enumerate((100, 100, 900))
    ]
    [outlier] = outliers_of(Steps(basis="profiler_step", count=3, median_ns=100, items=items), NO_LEDGER, costs)
    assert (
        outlier.text == "ProfilerStep#2 took 900 ns, 800 ns longer than the median step; no operator, kernel or "
        "wait accounts for that."
    )


def test_the_largest_of_many_in_order_of_time() -> None:
    many = 2 * MOST_OUTLIERS
    items = [
        StepItem(
            name=f"ProfilerStep#{at}", start_ns=at, duration_ns=100 + 10 * at if at < many else 100,
            oddity="outlier" if at < many else None,
        )
        for at in range(many + 3)
    ]  # fmt: skip
    costs = step_costs_of(draw("ProfilerStep#0  0-100"))
    found = outliers_of(Steps(basis="profiler_step", count=len(items), median_ns=100, items=items), NO_LEDGER, costs)
    assert [outlier.step for outlier in found] == list(range(many - MOST_OUTLIERS, many))


def test_a_recording_with_one_says_it_in_its_report(tmp_path: Path) -> None:
    [file] = find_traces(recording(tmp_path / "run", 1000, slow_step=4))
    [outlier] = read_file(file, Job()).report.outliers
    assert outlier.name == "ProfilerStep#4"
    assert "`aten::mm` 1 ms more (2 calls instead of 1)" in outlier.text
