"""The library: what it finds, when it analyses, what it keeps, what it tells."""

from __future__ import annotations

import os
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tb_tidy_plugin.errors import NotFoundError, TraceError
from tb_tidy_plugin.plugin import library as module
from tb_tidy_plugin.plugin.analysis import Analysis, Asked
from tb_tidy_plugin.plugin.library import Library, StillAnalysingError
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.payloads import ProfileState
from tb_tidy_plugin.plugin.scan import Key, look
from tb_tidy_plugin.trace.files import TraceFile
from tests.support.libraries import LIMIT_S, RUN, finished, started, states
from tests.support.logdirs import broken_traces, trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE, held_by, script, waiting_for

pytestmark = pytest.mark.usefixtures("always_looks_again")


# Looking


def test_nothing_is_analysed_before_somebody_asks(path: Path) -> None:
    library = started(path.parents[1])
    [state] = states(library).values()
    assert (state.state, state.fraction, state.version, state.size) == ("queued", 0.0, 1, path.stat().st_size)
    assert library.has_traces


def test_an_empty_logdir(tmp_path: Path) -> None:
    library = started(tmp_path)
    assert library.runs().runs == []
    assert library.runs().logdirs == [str(tmp_path)]
    assert not library.has_traces


def test_what_cannot_be_opened_does_not_come_first(path: Path, tmp_path: Path) -> None:
    trace(tmp_path / "elsewhere" / "w.pt.trace.json")
    (path.parents[1] / "a-link").symlink_to(tmp_path / "elsewhere")
    library = started(path.parents[1])
    assert [(run, state.state) for run, state in states(library).items()] == [("run", "queued"), ("a-link", "error")]
    with pytest.raises(TraceError, match="leads out of the logdir"):
        library.kept(Key("a-link", "", ""), LIMIT_S)


def test_a_link_that_is_alone_shows_the_tab(tmp_path: Path) -> None:
    """It may lead to traces, and the tab says how to follow it."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "logs" / "run").symlink_to(tmp_path / "elsewhere")
    assert started(tmp_path / "logs").has_traces


def test_before_the_first_look_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    library = Library([Logdir(str(tmp_path))])
    assert library.scanning
    assert library.runs().scanning


def test_a_new_run_and_a_new_span_are_found(path: Path) -> None:
    library = started(path.parents[1])
    assert list(states(library)) == ["run"]
    trace(path.parents[1] / "another" / "w.pt.trace.json")
    trace(path.with_name("w.5.pt.trace.json"))
    assert list(states(library)) == ["another", "run"]
    assert [profile.span for profile in library.runs().runs[1].profiles] == ["", "5"]


def test_it_looks_again_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PERIOD_S", 0.05)
    library = started(tmp_path)
    trace(tmp_path / "run" / "w.pt.trace.json")
    until(lambda: library.has_traces)


def test_a_change_is_a_new_version_and_analysed_anew_when_asked_for(path: Path) -> None:
    library = started(path.parents[1])
    before = finished(library)
    trace(path, operators=5)
    [changed] = states(library).values()
    assert changed.state == "queued"
    assert changed.version > before.version
    assert library.report("run").report.profiles == []
    after = finished(library)
    assert after.version == changed.version
    [profile] = library.report("run").report.profiles
    assert profile.findings[0].matches == 5


def test_what_has_not_changed_keeps_its_version_and_its_report(path: Path) -> None:
    library = started(path.parents[1])
    before = finished(library)
    trace(path.parents[1] / "another" / "w.pt.trace.json")
    assert states(library)["run"] == before
    assert len(library.report("run").report.profiles) == 1


def test_another_span_changes_numbers_and_no_versions(path: Path) -> None:
    five = trace(path.with_name("w.5.pt.trace.json"))
    path.unlink()
    library = started(path.parents[1])
    assert states(library)["run"].span_index == 1
    trace(five.with_name("w.3.pt.trace.json"))
    third, fifth = library.runs().runs[0].profiles
    assert (third.span_index, fifth.span_index, fifth.version) == (1, 2, 1)


def test_a_vanished_trace_is_gone_and_said_to_be_so(path: Path) -> None:
    library = started(path.parents[1])
    finished(library)
    path.unlink()
    with pytest.raises(NotFoundError, match="no run `run` in the logdir"):
        library.report("run")
    assert states(library) == {}
    assert not library.has_traces
    with pytest.raises(NotFoundError):
        library.progress(RUN)
    with pytest.raises(NotFoundError):
        library.kept(RUN, LIMIT_S)


def test_a_trace_that_vanishes_before_the_next_look_is_an_error_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = started(path.parents[1])
    monkeypatch.setattr(module, "FRESH_S", 1000.0)
    path.unlink()
    problem = finished(library).problem
    assert problem is not None
    assert problem.error == "The file is no longer there."


def test_remote_folders_are_shown_with_their_problem(tmp_path: Path) -> None:
    library = Library([Logdir("gs://bucket/runs")])
    library.start()
    until(lambda: not library.scanning)
    state = states(library)["gs://bucket/runs"]
    assert state.state == "error"
    assert state.problem is not None
    assert library.report("gs://bucket/runs").states == [state]
    assert not library.has_traces


# Analysing


def test_a_report_is_answered_at_once_and_complete_when_it_is_done(path: Path) -> None:
    library = started(path.parents[1])
    answer = library.report("run")
    assert [state.state for state in answer.states] == ["queued"]
    assert answer.report.profiles == []
    assert finished(library).state == "done"
    answer = library.report("run", "w", "")
    assert [state.state for state in answer.states] == ["done"]
    assert [profile.worker for profile in answer.report.profiles] == ["w"]


def test_progress_tells_the_stages_in_order_and_ends(path: Path, tmp_path: Path) -> None:
    """Where this process is scheduled late, a stage may be over before it is looked at."""
    gate = tmp_path / "gate"
    library = started(path.parents[1], held_by(gate))
    progress = library.progress(RUN)
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
    library = started(path.parents[1])
    ends: list[ProfileState] = []
    threads = [threading.Thread(target=lambda: ends.append(finished(library))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert [state.state for state in ends] == ["done"] * 8
    assert {state.version for state in ends} == {1}


def test_a_broken_trace_says_why_and_harms_no_other(tmp_path: Path) -> None:
    words = broken_traces(tmp_path)
    trace(tmp_path / "whole" / "worker.pt.trace.json")
    library = started(tmp_path)
    for run, word in words.items():
        state = finished(library, Key(run, "worker", ""))
        assert state.problem is not None
        assert word in state.problem.error
        assert state.problem.advice
        partly = run in {"truncated", "cut_gz"}
        assert state.state == ("done" if partly else "error")
        assert len(library.report(run).report.profiles) == partly
    assert finished(library, Key("whole", "worker", "")).problem is None


def test_a_trace_cut_off_since_it_is_being_written_is_read_again_when_it_has_grown(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:60])
    library = started(path.parents[1])
    assert finished(library).state == "error"
    path.write_bytes(whole)
    assert states(library)["run"].state == "queued"
    assert finished(library).state == "done"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_trace_that_may_not_be_read_is_read_when_it_may(path: Path) -> None:
    path.chmod(0)
    library = started(path.parents[1])
    problem = finished(library).problem
    assert problem is not None
    assert problem.error == "The file may not be read."
    path.chmod(0o644)
    assert states(library)["run"].state == "queued"
    assert finished(library).state == "done"


def test_a_crash_gets_another_try_and_then_is_an_error_until_the_file_changes(path: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    library = started(path.parents[1], script(f"open({str(count)!r}, 'a').write('x'); os.kill(os.getpid(), 9)"))
    for _ in range(2):
        state = finished(library)
        assert state.state == "error"
        assert state.problem is not None
        assert "killed twice, most likely because memory ran out" in state.problem.error
    assert count.read_text() == "xx"
    os.utime(path)
    assert states(library)["run"].state == "queued"
    finished(library)
    assert count.read_text() == "xxxx"


def test_a_change_during_the_analysis_begins_it_anew(path: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    library = started(path.parents[1], held_by(gate))
    progress = library.progress(RUN)
    assert next(progress).version == 1
    trace(path, operators=7)
    assert states(library)["run"].version == 2
    gate.touch()
    *_, last = progress
    assert (last.state, last.version) == ("done", 2)
    assert library.report("run").report.profiles[0].findings[0].matches == 7


def test_a_trace_that_becomes_a_link_out_of_the_logdir_while_it_waits_is_not_read(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Noted(Analysis):
        def __init__(self, file: TraceFile, command: Sequence[str], asked: Asked) -> None:
            read.append(file.run)
            super().__init__(file, command, asked)

    monkeypatch.setattr(module, "Analysis", Noted)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    for run in ("before", "beside"):  # as many as run at a time
        trace(path.parents[1] / run / "w.pt.trace.json")
    library = started(path.parents[1], held_by(tmp_path / "gate"))
    for run in ("before", "beside", "run"):
        library.report(run)
    path.rename(tmp_path / "outside.json")
    path.symlink_to(tmp_path / "outside.json")
    assert states(library)["run"].state == "error"
    (tmp_path / "gate").touch()
    assert finished(library, Key("before", "w", "")).state == "done"
    assert finished(library, Key("beside", "w", "")).state == "done"
    assert read == ["before", "beside"], "the next one begins in the moment in which one is done"


def test_a_trace_that_vanishes_during_the_analysis_ends_its_progress(path: Path, tmp_path: Path) -> None:
    library = started(path.parents[1], held_by(tmp_path / "never"))
    progress = library.progress(RUN)
    next(progress)
    path.unlink()
    assert states(library) == {}
    assert list(progress) == []


@pytest.mark.parametrize(("processors", "large"), [(None, 1), (1, 1), (2, 1), (4, 2), (7, 3)])
def test_large_traces_take_half_of_the_processors_and_small_ones_a_place_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int | None, large: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    monkeypatch.setattr(module, "SMALL_BYTES", 5000)
    library = queued(tmp_path, "ABCDEF")
    began = tmp_path / "began"
    until(lambda: began.exists() and len(began.read_text()) == large)
    for run in "ab":
        library.report(run)
    until(lambda: len(began.read_text()) == large + 1)
    assert began.read_text()[large:] == "a"
    (tmp_path / "gate").touch()
    until(lambda: len(began.read_text()) == 8)
    until(lambda: all(state.state == "error" for state in states(library).values()))


def test_small_traces_are_analysed_while_a_bad_one_spins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(module, "SMALL_BYTES", 5000)
    *start, code = WITH_MADE_UP_RULE
    spinning = f"{waiting_for(tmp_path / 'gate')}\nraise SystemExit\n"
    bad = f"if 'bad' in sys.argv[1]:\n{textwrap.indent(spinning, '    ')}\n"
    for run in "ab":
        trace(tmp_path / "logs" / run / "w.pt.trace.json")
    trace(tmp_path / "logs" / "bad" / "w.pt.trace.json", operators=50)
    library = started(tmp_path / "logs", (*start, f"import sys\n{bad}{code}"))
    library.report("bad")
    for run in "ab":
        library.report(run)
    until(lambda: [states(library)[run].state for run in ("a", "b", "bad")] == ["done", "done", "queued"])
    (tmp_path / "gate").touch()
    assert finished(library, Key("bad", "w", "")).state == "error"


def test_the_last_request_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    library = queued(tmp_path, "abcdef")
    library.report("d")
    (tmp_path / "gate").touch()
    until(lambda: all(state.state == "error" for state in states(library).values()))
    assert (tmp_path / "began").read_text() == "adfecb"


def test_how_large_a_trace_is_goes_by_its_text(tmp_path: Path) -> None:
    path = trace(tmp_path / "run" / "w.pt.trace.json.gz")
    [found] = look([Logdir(str(tmp_path))]).values()
    assert found.likely_text == 15 * path.stat().st_size


def queued(folder: Path, runs: str) -> Library:
    """A library asked for `runs`; a worker adds the run's name to the file `began`, and waits for the file `gate`.

    The traces of runs in capitals are above 5,000 bytes; those of `a` and `b`, which are there as well, are below.
    """
    for run in {*runs, "a", "b"}:
        trace(folder / "logs" / run / "w.pt.trace.json", operators=50 if run.isupper() else 3)
    note = f"open({str(folder / 'began')!r}, 'a').write(os.path.basename(os.path.dirname(sys.argv[1])))"
    library = started(folder / "logs", script(note + waiting_for(folder / "gate")))
    for run in runs:
        library.report(run)
    return library


def test_all_profiles_of_a_run_are_asked_for_by_its_name(tmp_path: Path) -> None:
    for name in ("r0.1", "r0.2", "r1.1"):
        trace(tmp_path / "run" / f"{name}.pt.trace.json")
    library = started(tmp_path)
    assert len(library.report("run").states) == 3
    for key in (Key("run", "r0", "1"), Key("run", "r0", "2"), Key("run", "r1", "1")):
        finished(library, key)
    assert [(each.worker, each.span) for each in library.report("run").report.profiles] == [
        ("r0", "1"), ("r0", "2"), ("r1", "1"),
    ]  # fmt: skip
    assert [each.span for each in library.report("run", "r0").report.profiles] == ["1", "2"]
    assert [each.worker for each in library.report("run", span="1").report.profiles] == ["r0", "r1"]


# Trying again


def test_an_analysis_that_was_killed_is_made_again_when_somebody_asks_for_it(path: Path, tmp_path: Path) -> None:
    count, mended = tmp_path / "count", tmp_path / "mended"
    *start, code = WITH_MADE_UP_RULE
    dies = f"open({str(count)!r}, 'a').write('x'); os.path.exists({str(mended)!r}) or os.kill(os.getpid(), 9); "
    library = started(path.parents[1], (*start, f"import os; {dies}{code}"))
    failed = finished(library)
    assert failed.state == "error"
    mended.touch()
    assert finished(library) == failed, "asking for it is not enough"
    again = library.retry(RUN)
    assert (again.state, again.problem, again.recording) == ("queued", None, failed.recording)
    assert again.version > failed.version
    assert finished(library).state == "done"
    assert count.read_text() == "xxx"


def test_what_has_not_failed_is_not_made_again(path: Path, tmp_path: Path) -> None:
    library = started(path.parents[1])
    [waiting] = states(library).values()
    assert library.retry(RUN) == waiting
    done = finished(library)
    assert library.retry(RUN) == done
    with pytest.raises(NotFoundError):
        library.retry(Key("run", "w", "7"))


def test_a_folder_that_cannot_be_listed_stays_one(tmp_path: Path) -> None:
    library = Library([Logdir("gs://bucket/runs")])
    library.start()
    until(lambda: not library.scanning)
    [state] = states(library).values()
    assert library.retry(Key("gs://bucket/runs", "", "")) == state


# Keeping


def test_beyond_the_limit_what_was_unused_longest_is_given_up_and_made_again(tmp_path: Path) -> None:
    for run in "abc":
        trace(tmp_path / run / "w.pt.trace.json")
    size = started(tmp_path).kept(Key("a", "w", ""), LIMIT_S).size
    library = started(tmp_path, kept_bytes=5 * size // 2)
    for run in "ab":
        finished(library, Key(run, "w", ""))
    library.report("a")
    finished(library, Key("c", "w", ""))
    assert {run: state.state for run, state in states(library).items()} == {"a": "done", "b": "queued", "c": "done"}
    assert library.kept(Key("b", "w", ""), LIMIT_S).result.report.findings
    assert states(library)["b"].version == 2


def test_the_last_result_is_kept_however_large(path: Path) -> None:
    library = started(path.parents[1], kept_bytes=0)
    assert finished(library).state == "done"
    assert library.kept(RUN, 0.0).file.path == path


def test_waiting_for_a_result_has_an_end(path: Path, tmp_path: Path) -> None:
    library = started(path.parents[1], held_by(tmp_path / "never"))
    with pytest.raises(StillAnalysingError):
        library.kept(RUN, 0.1)


def test_waiting_for_a_broken_trace_says_why(path: Path) -> None:
    path.write_bytes(b"")
    library = started(path.parents[1])
    with pytest.raises(TraceError, match="The file is empty"):
        library.kept(RUN, LIMIT_S)
