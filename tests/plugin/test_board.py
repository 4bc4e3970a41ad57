"""All runs at a glance: figures of what is known, and how much is analysed for it."""

from __future__ import annotations

from pathlib import Path

from tb_tidy_plugin.plugin.board import UNASKED
from tb_tidy_plugin.plugin.models import BoardAnswer, LoggedRun
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.trace.cache import Cache
from tests.support.logdirs import trace
from tests.support.profiles import LIMIT_S, finished, started
from tests.support.waiting import until
from tests.support.workers import held_by


def settled(profiles: Profiles, *, every: bool = False) -> BoardAnswer:
    profiles.board({}, every=every)
    until(lambda: profiles.board({}).pending == 0)
    return profiles.board({})


def test_figures_are_those_of_the_report(tmp_path: Path) -> None:
    trace(tmp_path / "job" / "w.1700000000000.pt.trace.json")
    profiles = started(tmp_path)
    [row] = settled(profiles).runs
    report = profiles.kept(Key("job", "w", "1700000000000"), LIMIT_S).result.report
    assert (row.known, row.recorded_ms, row.device, row.findings) == (True, 1700000000000, "CPU only", 1)
    assert (row.finding, row.action) == (report.findings[0].id, report.findings[0].action)
    assert row.step_ns == report.ledger.step_ns.median
    assert row.saving_ns == (report.joint_saving.expected_ns if report.joint_saving else None)


def test_of_many_runs_the_newest_few_are_analysed_and_all_on_request(tmp_path: Path) -> None:
    names = [f"run{at:02}" for at in range(UNASKED + 3)]
    for at, name in enumerate(names):
        trace(tmp_path / name / f"w.{1700000000000 + at}.pt.trace.json")
    profiles = started(tmp_path)
    few = settled(profiles)
    assert [row.run for row in few.runs if row.known] == names[3:]
    assert few.unasked == 3
    assert {state.state for run in profiles.runs().runs[:3] for state in run.profiles} == {"queued"}
    assert [row.known for row in settled(profiles, every=True).runs] == [True] * len(names)


def test_what_is_kept_is_shown_without_an_analysis(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    logs = tmp_path / "logs"
    for at in range(UNASKED + 1):
        trace(logs / f"run{at}" / f"w.{1700000000000 + at}.pt.trace.json")
    finished(started(logs, cache=cache), Key("run0", "w", "1700000000000"))
    again = started(logs, held_by(tmp_path / "never"), cache=cache)
    until(lambda: again.board({}).runs[0].known)
    assert again.board({}).unasked == 0
    assert again.board({}).runs[0].state == "queued"


def test_a_newer_recording_takes_the_figures_away_and_a_broken_one_has_none(tmp_path: Path) -> None:
    path = trace(tmp_path / "job" / "w.pt.trace.json")
    profiles = started(tmp_path)
    assert settled(profiles).runs[0].known
    path.write_bytes(b"not a trace")
    until(lambda: profiles.board({}).runs[0].state == "error")
    answer = profiles.board({"job": LoggedRun({"loss": 0.5}, {})})
    assert (answer.runs[0].known, answer.pending, answer.unasked) == (False, 0, 0)
    assert answer.runs[0].logged == LoggedRun({"loss": 0.5}, {})
    assert "not" in answer.runs[0].problem


def test_a_partly_read_recording_says_so_before_and_after_a_restart(tmp_path: Path) -> None:
    """The oldest of nine runs, whose list of events ends in the middle: the others are whole."""
    cache, logs = Cache(tmp_path / "cache"), tmp_path / "logs"
    for at in range(UNASKED + 1):
        path = trace(logs / f"run{at}" / f"w.{1700000000000 + at}.pt.trace.json")
        if not at:
            path.write_bytes(path.read_bytes().rpartition(b"]")[0])
    profiles = started(logs, cache=cache)
    finished(profiles, Key("run0", "w", "1700000000000"))
    again = started(logs, held_by(tmp_path / "never"), cache=cache)
    until(lambda: again.board({}).runs[0].known)
    assert again.board({}).runs[0].state == "queued"
    for found in (profiles, again):
        problems = [row.problem for row in found.board({}).runs]
        assert "does not end" in problems[0]
        assert problems[1:] == [""] * UNASKED


def test_another_rank_that_cannot_be_read_marks_the_run(tmp_path: Path) -> None:
    trace(tmp_path / "job" / "rank0.pt.trace.json")
    (tmp_path / "job" / "rank1.pt.trace.json").write_bytes(b"")
    profiles = started(tmp_path)
    profiles.report("job", every_rank=True)
    until(lambda: all(each.state in {"done", "error"} for each in profiles.runs().runs[0].profiles))
    [row] = profiles.board({}).runs
    assert row.known
    assert "empty" in row.problem
