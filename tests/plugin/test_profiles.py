"""`Profiles`: what it finds, when it analyses, what it keeps, what it tells."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_tidy_plugin.plugin import profiles as module
from tb_tidy_plugin.plugin.analysis import AnalysisSettings, FileAnalysis
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ProfileState
from tb_tidy_plugin.plugin.profiles import Profiles, StillAnalysingError
from tb_tidy_plugin.plugin.scan import Catalog, Key, look
from tb_tidy_plugin.trace.files import TraceFile
from tb_tidy_plugin.words.errors import NotFoundError, TraceError
from tests.support.logdirs import broken_traces, trace
from tests.support.profiles import LIMIT_S, RUN, finished, started, states
from tests.support.waiting import until
from tests.support.workers import ASKED, WITH_MADE_UP_RULE, held_by, script, waiting_for

pytestmark = pytest.mark.usefixtures("always_looks_again")


# Looking


def test_nothing_is_analysed_before_somebody_asks(path: Path) -> None:
    profiles = started(path.parents[1])
    [state] = states(profiles).values()
    assert (state.state, state.fraction, state.version, state.size) == ("queued", 0.0, 1, path.stat().st_size)
    assert profiles.has_traces


def test_an_empty_logdir(tmp_path: Path) -> None:
    profiles = started(tmp_path)
    assert profiles.runs().runs == []
    assert profiles.runs().logdirs == [str(tmp_path)]
    assert not profiles.has_traces


def test_what_cannot_be_opened_does_not_come_first(path: Path, tmp_path: Path) -> None:
    trace(tmp_path / "elsewhere" / "w.pt.trace.json")
    (path.parents[1] / "a-link").symlink_to(tmp_path / "elsewhere")
    profiles = started(path.parents[1])
    assert [(run, state.state) for run, state in states(profiles).items()] == [("run", "queued"), ("a-link", "error")]
    with pytest.raises(TraceError, match="leads out of the logdir"):
        profiles.kept(Key("a-link", "", ""), LIMIT_S)


def test_a_link_that_is_alone_shows_the_tab(tmp_path: Path) -> None:
    """It may lead to traces, and the tab says how to follow it."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs" / "run").symlink_to(tmp_path / "elsewhere")
    assert started(tmp_path / "logs").has_traces


def test_before_the_first_look_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_PATIENCE_S", 0.0)
    profiles = Profiles([Logdir(str(tmp_path))])
    assert profiles.scanning
    assert profiles.runs().scanning


def test_a_new_run_and_a_new_span_are_found(path: Path) -> None:
    profiles = started(path.parents[1])
    assert list(states(profiles)) == ["run"]
    trace(path.parents[1] / "another" / "w.pt.trace.json")
    trace(path.with_name("w.5.pt.trace.json"))
    assert list(states(profiles)) == ["another", "run"]
    assert [profile.span for profile in profiles.runs().runs[1].profiles] == ["", "5"]


def test_it_looks_again_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD_S", 0.05)
    profiles = started(tmp_path)
    trace(tmp_path / "run" / "w.pt.trace.json")
    until(lambda: profiles.has_traces)


def test_a_change_is_a_new_version_and_analysed_anew_when_asked_for(path: Path) -> None:
    profiles = started(path.parents[1])
    before = finished(profiles)
    trace(path, operators=5)
    [changed] = states(profiles).values()
    assert changed.state == "queued"
    assert changed.version > before.version
    assert profiles.report("run").report.profiles == []
    after = finished(profiles)
    assert after.version == changed.version
    [profile] = profiles.report("run").report.profiles
    assert profile.findings[0].matches == 5


def test_what_has_not_changed_keeps_its_version_and_its_report(path: Path) -> None:
    profiles = started(path.parents[1])
    before = finished(profiles)
    trace(path.parents[1] / "another" / "w.pt.trace.json")
    assert states(profiles)["run"] == before
    assert len(profiles.report("run").report.profiles) == 1


def test_another_span_changes_numbers_and_no_versions(path: Path) -> None:
    five = trace(path.with_name("w.5.pt.trace.json"))
    path.unlink()
    profiles = started(path.parents[1])
    assert states(profiles)["run"].span_index == 1
    trace(five.with_name("w.3.pt.trace.json"))
    third, fifth = profiles.runs().runs[0].profiles
    assert (third.span_index, fifth.span_index, fifth.version) == (1, 2, 1)


def test_a_vanished_trace_is_gone_and_said_to_be_so(path: Path) -> None:
    profiles = started(path.parents[1])
    finished(profiles)
    path.unlink()
    with pytest.raises(NotFoundError, match="no run `run` in the logdir"):
        profiles.report("run")
    assert states(profiles) == {}
    assert not profiles.has_traces
    with pytest.raises(NotFoundError):
        profiles.progress(RUN)
    with pytest.raises(NotFoundError):
        profiles.kept(RUN, LIMIT_S)


def test_a_trace_that_vanishes_before_the_next_look_is_an_error_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles = started(path.parents[1])
    monkeypatch.setattr(module, "FRESH_S", 1000.0)
    path.unlink()
    problem = finished(profiles).problem
    assert problem is not None
    assert problem.error == "The file is no longer there."


def test_remote_folders_are_shown_with_their_problem(tmp_path: Path) -> None:
    profiles = Profiles([Logdir("gs://bucket/runs")])
    profiles.start()
    until(lambda: not profiles.scanning)
    state = states(profiles)["gs://bucket/runs"]
    assert state.state == "error"
    assert state.problem is not None
    assert profiles.report("gs://bucket/runs").states == [state]
    assert not profiles.has_traces


# Analysing


def test_a_report_is_answered_at_once_and_complete_when_it_is_done(path: Path) -> None:
    profiles = started(path.parents[1])
    answer = profiles.report("run")
    assert [state.state for state in answer.states] == ["queued"]
    assert answer.report.profiles == []
    assert finished(profiles).state == "done"
    answer = profiles.report("run", "w", "")
    assert [state.state for state in answer.states] == ["done"]
    assert [profile.worker for profile in answer.report.profiles] == ["w"]


def test_progress_tells_the_stages_in_order_and_ends(path: Path, tmp_path: Path) -> None:
    """Where this process is scheduled late, a stage may be over before it is looked at."""
    gate = tmp_path / "gate"
    profiles = started(path.parents[1], held_by(gate))
    progress = profiles.progress(RUN)
    seen = [next(progress)]
    gate.touch()
    seen += progress
    stages = list(dict.fromkeys(state.state for state in seen))
    assert stages == [stage for stage in ("queued", "reading", "analysing", "done") if stage in stages]
    assert (stages[0], stages[-1]) == ("queued", "done")
    fractions = [state.fraction for state in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_many_may_follow_one_analysis(path: Path) -> None:
    profiles = started(path.parents[1])
    ends: list[ProfileState] = []
    threads = [threading.Thread(target=lambda: ends.append(finished(profiles))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [state.state for state in ends] == ["done"] * 8
    assert {state.version for state in ends} == {1}


def test_a_broken_trace_says_why_and_harms_no_other(tmp_path: Path) -> None:
    words = broken_traces(tmp_path)
    trace(tmp_path / "whole" / "worker.pt.trace.json")
    profiles = started(tmp_path)
    for run, word in words.items():
        state = finished(profiles, Key(run, "worker", ""))
        assert state.problem is not None
        assert word in state.problem.error
        assert state.problem.advice
        partly = run in {"truncated", "cut_gz"}
        assert state.state == ("done" if partly else "error")
        assert len(profiles.report(run).report.profiles) == partly
    assert finished(profiles, Key("whole", "worker", "")).problem is None


def test_a_trace_cut_off_since_it_is_being_written_is_read_again_when_it_has_grown(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:60])
    profiles = started(path.parents[1])
    assert finished(profiles).state == "error"
    path.write_bytes(whole)
    assert states(profiles)["run"].state == "queued"
    assert finished(profiles).state == "done"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_trace_that_may_not_be_read_is_read_when_it_may(path: Path) -> None:
    path.chmod(0)
    profiles = started(path.parents[1])
    problem = finished(profiles).problem
    assert problem is not None
    assert problem.error == "The file cannot be read for lack of permission."
    path.chmod(0o644)
    assert states(profiles)["run"].state == "queued"
    assert finished(profiles).state == "done"


def test_a_crash_gets_another_try_and_then_is_an_error_until_the_file_changes(path: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    profiles = started(path.parents[1], script(f"open({str(count)!r}, 'a').write('x'); os.kill(os.getpid(), 9)"))
    for _ in range(2):
        state = finished(profiles)
        assert state.state == "error"
        assert state.problem is not None
        assert "killed twice, most likely because memory ran out" in state.problem.error
    assert count.read_text() == "xx"
    os.utime(path)
    assert states(profiles)["run"].state == "queued"
    finished(profiles)
    assert count.read_text() == "xxxx"


def test_a_change_during_the_analysis_begins_it_anew(path: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    profiles = started(path.parents[1], held_by(gate))
    progress = profiles.progress(RUN)
    assert next(progress).version == 1
    trace(path, operators=7)
    assert states(profiles)["run"].version == 2
    gate.touch()
    *_, last = progress
    assert (last.state, last.version) == ("done", 2)
    assert profiles.report("run").report.profiles[0].findings[0].matches == 7


def test_a_trace_that_becomes_a_link_out_of_the_logdir_while_it_waits_is_not_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Noted(FileAnalysis):
        def __init__(self, file: TraceFile, command: Sequence[str], asked: AnalysisSettings) -> None:
            read.append(file.run)
            super().__init__(file, command, asked)

    monkeypatch.setattr(module, "FileAnalysis", Noted)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    for run in ("before", "beside"):  # as many as run at a time
        trace(path.parents[1] / run / "w.pt.trace.json")
    profiles = started(path.parents[1], held_by(tmp_path / "gate"))
    for run in ("before", "beside", "run"):
        profiles.report(run)
    path.rename(tmp_path / "outside.json")
    path.symlink_to(tmp_path / "outside.json")
    assert states(profiles)["run"].state == "error"
    (tmp_path / "gate").touch()
    assert finished(profiles, Key("before", "w", "")).state == "done"
    assert finished(profiles, Key("beside", "w", "")).state == "done"
    assert read == ["before", "beside"], "the next one begins in the moment in which one is done"


def test_a_trace_that_vanishes_during_the_analysis_ends_its_progress(path: Path, tmp_path: Path) -> None:
    profiles = started(path.parents[1], held_by(tmp_path / "never"))
    progress = profiles.progress(RUN)
    next(progress)
    path.unlink()
    assert states(profiles) == {}
    assert list(progress) == []


@pytest.mark.parametrize(("processors", "large"), [(None, 1), (1, 1), (2, 1), (4, 2), (7, 3)])
def test_large_traces_take_half_of_the_processors_and_small_ones_a_place_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int | None, large: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    monkeypatch.setattr(module, "SMALL_BYTES", 5000)
    profiles = queued(tmp_path, "ABCDEF")
    began = tmp_path / "began"
    until(lambda: began.exists() and len(began.read_text()) == large)
    for run in "ab":
        profiles.report(run)
    until(lambda: len(began.read_text()) == large + 1)
    assert began.read_text()[large:] == "a"
    (tmp_path / "gate").touch()
    until(lambda: len(began.read_text()) == 8)
    until(lambda: all(state.state == "error" for state in states(profiles).values()))


def test_small_traces_are_analysed_while_a_bad_one_spins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(module, "SMALL_BYTES", 5000)
    *start, code = WITH_MADE_UP_RULE
    spinning = f"{waiting_for(tmp_path / 'gate')}\nraise SystemExit\n"
    bad = f"{ASKED}\nif 'bad' in path:\n{textwrap.indent(spinning, '    ')}\n"
    for run in "ab":
        trace(tmp_path / "logs" / run / "w.pt.trace.json")
    trace(tmp_path / "logs" / "bad" / "w.pt.trace.json", operators=50)
    profiles = started(tmp_path / "logs", (*start, f"import sys\n{bad}{code}"))
    profiles.report("bad")
    for run in "ab":
        profiles.report(run)
    until(lambda: [states(profiles)[run].state for run in ("a", "b", "bad")] == ["done", "done", "queued"])
    (tmp_path / "gate").touch()
    assert finished(profiles, Key("bad", "w", "")).state == "error"


def test_the_last_request_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    profiles = queued(tmp_path, "abcdef")
    profiles.report("d")
    (tmp_path / "gate").touch()
    until(lambda: all(state.state == "error" for state in states(profiles).values()))
    assert (tmp_path / "began").read_text() == "adfecb"


def test_how_large_a_trace_is_goes_by_its_text(tmp_path: Path) -> None:
    path = trace(tmp_path / "run" / "w.pt.trace.json.gz")
    [found] = look([Logdir(str(tmp_path))]).values()
    assert found.likely_text == 15 * path.stat().st_size


def queued(folder: Path, runs: str) -> Profiles:
    """Profiles asked for `runs`; a worker adds the run's name to the file `began`, and waits for the file `gate`.

    The traces of runs in capitals are above 5,000 bytes; those of `a` and `b`, which are there as well, are below.
    """
    for run in {*runs, "a", "b"}:
        trace(folder / "logs" / run / "w.pt.trace.json", operators=50 if run.isupper() else 3)
    note = f"{ASKED}open({str(folder / 'began')!r}, 'a').write(os.path.basename(os.path.dirname(path)))"
    profiles = started(folder / "logs", script(note + waiting_for(folder / "gate")))
    for run in runs:
        profiles.report(run)
    return profiles


def test_all_profiles_of_a_run_are_asked_for_by_its_name(tmp_path: Path) -> None:
    for name in ("r0.1", "r0.2", "r1.1"):
        trace(tmp_path / "run" / f"{name}.pt.trace.json")
    profiles = started(tmp_path)
    assert len(profiles.report("run").states) == 3
    for key in (Key("run", "r0", "1"), Key("run", "r0", "2"), Key("run", "r1", "1")):
        finished(profiles, key)
    assert [(each.worker, each.span) for each in profiles.report("run").report.profiles] == [
        ("r0", "1"), ("r0", "2"), ("r1", "1"),
    ]  # fmt: skip
    assert [each.span for each in profiles.report("run", "r0").report.profiles] == ["1", "2"]
    assert [each.worker for each in profiles.report("run", span="1").report.profiles] == ["r0", "r1"]


# Trying again


def test_an_analysis_that_was_killed_is_made_again_when_somebody_asks_for_it(path: Path, tmp_path: Path) -> None:
    count, mended = tmp_path / "count", tmp_path / "mended"
    *start, code = WITH_MADE_UP_RULE
    dies = f"open({str(count)!r}, 'a').write('x'); os.path.exists({str(mended)!r}) or os.kill(os.getpid(), 9); "
    profiles = started(path.parents[1], (*start, f"import os; {dies}{code}"))
    failed = finished(profiles)
    assert failed.state == "error"
    mended.touch()
    assert finished(profiles) == failed, "asking for it is not enough"
    again = profiles.retry(RUN)
    assert (again.state, again.problem, again.recording) == ("queued", None, failed.recording)
    assert again.version > failed.version
    assert finished(profiles).state == "done"
    assert count.read_text() == "xxx"


def test_a_renewal_that_fails_leaves_the_earlier_report(path: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    *start, code = WITH_MADE_UP_RULE
    dies = f"import os; os.path.exists({str(broken)!r}) and os.kill(os.getpid(), 9); "
    profiles = started(path.parents[1], (*start, dies + code))
    finished(profiles)
    [before] = profiles.report("run").report.profiles
    broken.touch()
    profiles.renew(RUN, "a measurement")
    failed = finished(profiles)
    assert failed.problem is not None
    assert (failed.state, failed.reported) == ("error", True)
    assert profiles.report("run").report.profiles == [before]
    broken.unlink()
    profiles.retry(RUN)
    assert finished(profiles).state == "done"


def test_a_file_that_was_recorded_anew_is_renewed_for_a_reason_that_the_earlier_one_had(path: Path) -> None:
    profiles = started(path.parents[1])
    for operators in (3, 5):
        trace(path, operators=operators)
        assert states(profiles)["run"].state == "queued"
        version = finished(profiles).version
        profiles.renew(RUN, "a measurement")
        assert finished(profiles).version > version


def test_without_another_thread_an_analysis_fails_and_can_be_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may start no more threads than its limits allow."""
    profiles = started(path.parents[1])
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "torchtidy-analysis":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(threading.Thread, "start", limited)
        problem = finished(profiles).problem
        assert problem is not None
        assert problem.error == "The analysis could not be started: the system has no thread left."
        assert profiles.report("run").states[0].state == "error"
    profiles.retry(RUN)
    assert finished(profiles).state == "done"


def test_what_has_not_failed_is_not_made_again(path: Path, tmp_path: Path) -> None:
    profiles = started(path.parents[1])
    [waiting] = states(profiles).values()
    assert profiles.retry(RUN) == waiting
    done = finished(profiles)
    assert profiles.retry(RUN) == done
    with pytest.raises(NotFoundError):
        profiles.retry(Key("run", "w", "7"))


def test_a_folder_that_cannot_be_listed_stays_one(tmp_path: Path) -> None:
    profiles = Profiles([Logdir("gs://bucket/runs")])
    profiles.start()
    until(lambda: not profiles.scanning)
    [state] = states(profiles).values()
    assert profiles.retry(Key("gs://bucket/runs", "", "")) == state


# Keeping


def test_beyond_the_limit_what_was_unused_longest_is_given_up_and_made_again(tmp_path: Path) -> None:
    for run in "abc":
        trace(tmp_path / run / "w.pt.trace.json")
    size = started(tmp_path).kept(Key("a", "w", ""), LIMIT_S).size
    profiles = started(tmp_path, kept_bytes=5 * size // 2)
    for run in "ab":
        finished(profiles, Key(run, "w", ""))
    profiles.report("a")
    finished(profiles, Key("c", "w", ""))
    assert {run: state.state for run, state in states(profiles).items()} == {"a": "done", "b": "queued", "c": "done"}
    assert profiles.kept(Key("b", "w", ""), LIMIT_S).result.report.findings
    assert states(profiles)["b"].version == 2


def test_the_result_that_was_just_made_is_not_the_one_that_is_given_up(tmp_path: Path) -> None:
    """It was asked for before the others were used, when its analysis began."""
    for run in "abc":
        trace(tmp_path / "logs" / run / "w.pt.trace.json")
    size = started(tmp_path / "logs").kept(Key("a", "w", ""), LIMIT_S).size
    gate = tmp_path / "gate"
    *start, code = WITH_MADE_UP_RULE
    last = f"{ASKED}\nif path.endswith('c/w.pt.trace.json'):\n{textwrap.indent(waiting_for(gate), '    ')}\n"
    profiles = started(tmp_path / "logs", (*start, f"import sys\n{last}{code}"), kept_bytes=5 * size // 2)
    profiles.report("c")
    for run in "ab":
        finished(profiles, Key(run, "w", ""))
    gate.touch()
    until(lambda: states(profiles)["c"].state == "done")
    assert {run: state.state for run, state in states(profiles).items()} == {"a": "queued", "b": "done", "c": "done"}


def test_a_result_that_is_given_up_while_it_is_made_again_is_made_to_the_end(tmp_path: Path) -> None:
    for run in "ab":
        trace(tmp_path / "logs" / run / "w.pt.trace.json")
    gate, first = tmp_path / "gate", tmp_path / "first"
    *start, code = WITH_MADE_UP_RULE
    again = f"if os.path.exists({str(first)!r}):\n{textwrap.indent(waiting_for(gate), '    ')}\n"
    only_a = f"{ASKED}\nimport os\nif path.endswith('a/w.pt.trace.json'):\n{textwrap.indent(again, '    ')}\n"
    profiles = started(tmp_path / "logs", (*start, f"import sys\n{only_a}{code}"), kept_bytes=0)
    a, b = Key("a", "w", ""), Key("b", "w", "")
    before = finished(profiles, a)
    first.touch()
    profiles.renew(a, "a measurement")
    finished(profiles, b)  # there is room for one
    assert profiles.report("a").report.profiles == []
    assert not states(profiles)["a"].reported
    gate.touch()
    after = finished(profiles, a)
    assert (after.state, after.reported) == ("done", True)
    assert after.version > before.version


def test_the_last_result_is_kept_however_large(path: Path) -> None:
    profiles = started(path.parents[1], kept_bytes=0)
    assert finished(profiles).state == "done"
    assert profiles.kept(RUN, 0.0).file.path == path


def test_waiting_for_a_result_has_an_end(path: Path, tmp_path: Path) -> None:
    profiles = started(path.parents[1], held_by(tmp_path / "never"))
    with pytest.raises(StillAnalysingError):
        profiles.kept(RUN, 0.1)


def test_waiting_for_a_broken_trace_says_why(path: Path) -> None:
    path.write_bytes(b"")
    profiles = started(path.parents[1])
    with pytest.raises(TraceError, match="The file is empty"):
        profiles.kept(RUN, LIMIT_S)


# Cancelling, and looking calmly


def test_an_analysis_under_way_is_cancelled_and_made_on_the_next_try(path: Path, tmp_path: Path) -> None:
    profiles = started(path.parents[1], held_by(tmp_path / "gate"))
    profiles.report("run")
    cancelled = profiles.cancel(RUN)
    assert cancelled.state == "error"
    assert cancelled.problem is not None
    assert cancelled.problem.error == "The analysis was stopped."
    assert finished(profiles).state == "error"
    (tmp_path / "gate").touch()
    assert profiles.retry(RUN).state == "queued"
    assert finished(profiles).state == "done"
    assert profiles.cancel(RUN).state == "done"


def test_who_asks_calmly_waits_for_no_look_and_gets_one_by_and_by(path: Path) -> None:
    profiles = started(path.parents[1])
    trace(path.parents[1] / "new" / "w.pt.trace.json")
    until(lambda: [run.run for run in profiles.runs(calm=True).runs] == ["new", "run"])


def test_a_slow_disk_is_not_looked_at_again_for_those_who_ask_calmly(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    def slow(logdirs: Sequence[Logdir], configuration: Path | None, last: Catalog) -> Catalog:
        looks.extend(logdir.path for logdir in logdirs)
        time.sleep(0.2)
        return look(logdirs, configuration, last)

    monkeypatch.setattr(module, "look", slow)
    profiles = started(path.parents[1])
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        profiles.runs(calm=True)
    assert looks.count(str(path.parents[1])) == 1  # those of earlier tests go on


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them")
def test_a_worker_waits_from_when_the_page_is_asked_for(tmp_path: Path) -> None:
    began = tmp_path / "began"
    note = f"import os; open({str(began)!r}, 'a').write(str(os.getpid()) + chr(10)); "
    *start, code = WITH_MADE_UP_RULE
    noted = (*start, note + code)
    (tmp_path / "empty").mkdir()
    started(tmp_path / "empty", noted).watch()
    trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
    profiles = started(tmp_path / "logs", noted)
    assert not began.exists(), "nobody has asked for the page, or there is no trace"
    profiles.watch()
    until(began.exists)
    assert finished(profiles).state == "done"
    until(lambda: len(began.read_text().splitlines()) == 2)
