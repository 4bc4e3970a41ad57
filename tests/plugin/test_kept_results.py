"""Results that outlive TensorBoard, and findings that come before the tables."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin.analysis import WORKER, AnalysisSettings
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ProfileState
from tb_tidy_plugin.plugin.profiles import KEPT_BYTES, Profiles
from tb_tidy_plugin.trace.cache import Cache
from tests.support.logdirs import trace
from tests.support.profiles import LIMIT_S, RUN
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE, script, waiting_for

pytestmark = pytest.mark.usefixtures("always_looks_again")

NO_WORKER = script("raise SystemExit('no worker was needed')")


def opened(path: Path, command: tuple[str, ...], configuration: Path | None = None) -> Profiles:
    """Profiles as another TensorBoard has it."""
    cache = Cache(path.parents[2] / "cache")
    profiles = Profiles([Logdir(str(path.parents[1]))], command, KEPT_BYTES, AnalysisSettings(configuration, (), cache))
    profiles.start()
    return profiles


def finished(profiles: Profiles) -> ProfileState:
    profiles.report("run")
    *_, last = profiles.progress(RUN)
    return last


def test_another_tensorboard_starts_no_worker_and_answers_the_same(path: Path) -> None:
    first = opened(path, WITH_MADE_UP_RULE)
    assert finished(first).state == "done"
    until(lambda: any((path.parents[2] / "cache").glob("result-*")))
    second = opened(path, NO_WORKER)
    state = finished(second)
    assert (state.state, state.reported) == ("done", True)
    assert second.kept(RUN, LIMIT_S).result == first.kept(RUN, LIMIT_S).result


def test_a_trace_that_has_changed_is_analysed_again(path: Path) -> None:
    assert finished(opened(path, WITH_MADE_UP_RULE)).state == "done"
    trace(path, operators=7)
    profiles = opened(path, WITH_MADE_UP_RULE)
    assert finished(profiles).state == "done"
    assert profiles.kept(RUN, LIMIT_S).result.report.findings[0].matches == 7


def test_so_it_is_with_another_configuration(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "tb-tidy.toml"
    file.write_text('select = ["ALL"]')
    assert finished(opened(path, WORKER, file)).state == "done"
    file.write_text('ignore = ["ALL"]')
    profiles = opened(path, WORKER, file)
    assert finished(profiles).state == "done"
    assert profiles.kept(RUN, LIMIT_S).result.report.outcomes == []


def test_a_failure_is_not_kept(path: Path) -> None:
    assert finished(opened(path, NO_WORKER)).state == "error"
    assert finished(opened(path, WITH_MADE_UP_RULE)).state == "done"


def test_findings_are_answered_while_the_tables_are_still_made(path: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    *start, code = WITH_MADE_UP_RULE
    waiting = waiting_for(gate).replace("\n", "\n    ")
    slow_tables = (
        "import tb_tidy_plugin.plugin.analysis_worker as worker\nresult_of = worker.result_of\n"
        f"def slow(*given):\n    {waiting}\n    return result_of(*given)\nworker.result_of = slow\n"
    )
    *statements, last = code.split("; ")
    profiles = opened(path, (*start, "; ".join([*statements]) + "\n" + slow_tables + last))
    profiles.report("run")
    early = next(state for state in profiles.progress(RUN) if state.reported)
    assert early.state == "analysing"
    (profile,) = profiles.report("run").report.profiles
    assert [finding.matches for finding in profile.findings] == [3]
    gate.touch()
    state = finished(profiles)
    assert (state.state, state.reported) == ("done", True)
    assert profiles.report("run").report.profiles == [profile]
    assert profiles.kept(RUN, LIMIT_S).result.report == profile


def test_findings_of_an_analysis_that_fails_afterwards_are_not_shown(path: Path) -> None:
    *start, code = WITH_MADE_UP_RULE
    *statements, last = code.split("; ")
    failing = "import tb_tidy_plugin.plugin.analysis_worker as worker\nworker.result_of = None\n"
    profiles = opened(path, (*start, "; ".join(statements) + "\n" + failing + last))
    state = finished(profiles)
    assert (state.state, state.reported) == ("error", False)
    assert profiles.report("run").report.profiles == []


def test_what_a_trace_was_before_is_not_shown_while_the_new_one_is_analysed(path: Path, tmp_path: Path) -> None:
    profiles = opened(path, WITH_MADE_UP_RULE)
    assert finished(profiles).reported
    os.utime(path, (time.time() + 5, time.time() + 5))
    (run,) = profiles.runs().runs
    assert [profile.reported for profile in run.profiles] == [False]
