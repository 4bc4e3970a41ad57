"""The tab on a machine whose calls fail: each answer is one, nothing is lost, and what failed once is tried again."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.benchmarks import runner
from tb_tidy_plugin.benchmarks.measurement import NotMeasured
from tb_tidy_plugin.benchmarks.process import MeasuringRequest as BenchRequest
from tb_tidy_plugin.plugin.analysis import AnalysisOutcome, AnalysisSettings, FileAnalysis, OnNews, remembered
from tb_tidy_plugin.plugin.analysis_worker import (
    AnalysisMessage,
    AnalysisRequest,
    AnalysisResult,
    Failure,
    send_analysis,
)
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.scan import look
from tb_tidy_plugin.plugin.timeline_worker import Answered, FileQuestion, LanesQuestion, Shelf, Unreadable
from tb_tidy_plugin.plugin.web import create_app
from tb_tidy_plugin.trace import cached_columns
from tb_tidy_plugin.trace.cache import Cache
from tb_tidy_plugin.trace.files import TraceFile, find_traces
from tests.faults.injected import Fault, faults, injected
from tests.support.measurements import MEASURED_AT_ONCE, PAIR, measurement
from tests.support.profiles import LIMIT_S, finished, started
from tests.support.thinned import STEPS
from tests.support.whole_run import contents, write_run
from tests.support.workers import script

SAID_OTHERWISE = "lack of permission"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run, and all else that is written, below one folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return write_run(tmp_path / "logs" / "run").parent


class Here(FileAnalysis):
    """An analysis whose worker is this process."""

    def outcome(self, on_news: OnNews) -> AnalysisOutcome:
        said: list[AnalysisMessage] = []
        file, asked = self.file, self.asked
        assert asked.configuration is not None
        assert asked.cache.folder is not None
        configuration, folder = os.fsencode(asked.configuration), os.fsencode(asked.cache.folder)
        path = os.fsencode(file.path)
        send_analysis(AnalysisRequest(file.run, file.worker, file.span, path, configuration, (), folder), said.append)
        last = said[-1]
        assert isinstance(last, AnalysisResult | Failure)
        return last


class TestWorker:
    """The analysis, with its cache of columns, and the results that TensorBoard's process keeps."""

    @pytest.fixture
    def analysed(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], AnalysisOutcome]:
        monkeypatch.setattr(cached_columns, "WORTH_KEEPING", 0)
        (file,) = find_traces(run)
        asked = AnalysisSettings(run / "tb-tidy.toml", (), Cache(run.parents[1] / "cache"))
        return lambda: remembered(Here(file, (), asked), lambda _: None)

    @STEPS
    @pytest.mark.parametrize(
        ("is_known", "kinds"),
        [
            (False, ("open", "write", "close", "rename", "mkdir")),
            (True, ("open", "read", "mmap", "stat", "mark")),
        ],
    )
    def test_the_outcome_is_what_it_should_be_or_says_why(
        self, run: Path, analysed: Callable[[], AnalysisOutcome], *, is_known: bool, kinds: tuple[str, ...], every: int
    ) -> None:
        usual, before, reached = content_of(analysed()), contents(run), set()
        folder = run.parents[1] / "cache"
        for fault in faults(kinds, every=every):
            for path in folder.iterdir():
                path.unlink()
            if is_known:
                analysed()
            with injected(fault, run.parents[1]):
                found = analysed()
            reached |= {fault.kind} if fault.is_reached else set()
            told = found.error if isinstance(found, Failure) else " ".join(found.report.quality.notes)
            is_said = os.strerror(fault.error) in told or SAID_OTHERWISE in told
            assert content_of(found) == usual or is_said, str(fault)
            assert content_of(analysed()) == usual, f"{fault}: the next one is another one"
            assert contents(run) == before, str(fault)
            assert not list(folder.glob(".*")), str(fault)
        assert reached == set(kinds)

    def test_a_timeline_is_drawn_or_refused(self, run: Path) -> None:
        (file,) = find_traces(run)
        for fault in faults(("open", "read", "stat")):
            with injected(fault, run):
                reply = Shelf().reply(FileQuestion(os.fsencode(file.path), "now", LanesQuestion()))
            assert isinstance(reply, Answered | Unreadable), str(fault)


def content_of(outcome: AnalysisOutcome) -> bytes:
    """All but what says whether it may be kept."""
    if isinstance(outcome, AnalysisResult):
        outcome = msgspec.structs.replace(outcome, looked_at={})
    return msgspec.json.encode(outcome)


class TestProcesses:
    def test_an_analysis_that_cannot_be_started_is_a_failure(self, run: Path) -> None:
        said = msgspec.json.encode(Failure("It is over.", "")).decode()
        command = script(f"sys.stderr.write('the detail'); print({said!r})")
        for fault in faults(("fork", "open", "read", "close", "unlink")):
            with injected(fault, run.parents[1]):
                found = FileAnalysis(TraceFile("", "", "", run), command).outcome(lambda _: None)
            assert isinstance(found, Failure)
            assert found.error == "It is over." or os.strerror(fault.error) in found.error, str(fault)

    def test_a_measurement_that_cannot_be_started_is_told(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runner, "BENCHMARK_COMMAND", MEASURED_AT_ONCE)
        request = BenchRequest(rule="some-rule", pair=PAIR, asked="", preferred="cpu", budget_s=1)
        for fault in faults(("fork", "open")):
            with injected(fault, run.parents[1]):
                found = runner.PairMeasurement(request).result()
            told = found.error if isinstance(found, NotMeasured) else ""
            assert found == measurement() or os.strerror(fault.error) in told, str(fault)

    def test_without_a_single_file_more_it_is_told_too(self, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What nothing is written into is a file as well."""
        monkeypatch.setattr(os, "devnull", str(run / "nothing"))
        with injected(Fault("open", 1, errno.EMFILE, lasts=True), run.parents[1]):
            found = FileAnalysis(TraceFile("", "", "", run), (sys.executable, "-c", "")).outcome(lambda _: None)
            measured = runner.PairMeasurement(
                BenchRequest(rule="r", pair=PAIR, asked="", preferred="", budget_s=1)
            ).result()
        assert isinstance(found, Failure)
        assert found.error == f"The analysis could not be started: {os.strerror(errno.EMFILE)}."
        assert isinstance(measured, NotMeasured)
        assert measured.error == f"The measurement could not be started: {os.strerror(errno.EMFILE)}."

    def test_it_is_started_again_for_whoever_tries_again(self, run: Path) -> None:
        profiles = started(run.parent)
        (key,) = profiles.keys_of("run")
        with injected(Fault("fork", 1, errno.EAGAIN, lasts=False), run.parents[1]):
            assert finished(profiles, key).state == "error"
        profiles.retry(key)
        assert finished(profiles, key).state == "done"


class TestLooking:
    def test_what_is_known_stays_known_while_the_disk_does_not_answer(self, run: Path) -> None:
        (run.parent / "other" / "deep").mkdir(parents=True)
        write_run(run.parent / "other" / "deep")
        logdirs = [Logdir(str(run.parent))]
        usual = look(logdirs)
        assert len(usual) == 2
        for fault in faults(("list", "stat")):
            with injected(fault, run.parent):
                found = look(logdirs, last=usual)
            assert found.keys() == usual.keys(), str(fault)
        assert look(logdirs, last=usual) == usual

    def test_what_is_gone_is_gone(self, run: Path) -> None:
        logdirs = [Logdir(str(run.parent))]
        usual = look(logdirs)
        run.rename(run.parents[1] / "elsewhere")
        assert look(logdirs, last=usual) == {}


def test_the_tab_s_answers(run: Path) -> None:
    """No route answers with an error of the server's; sources and mutes stay as they are."""
    profiles = started(run.parent)
    app = create_app(profiles, (), MuteStore([Logdir(str(run.parent))]))
    profiles.kept(profiles.keys_of("run")[0], LIMIT_S)
    before, page = contents(run.parent), app.test_client()
    profile = "run=run&worker=w&span=1"
    routes = (f"source?{profile}&file=train.py", "mutes", f"benchmarks?{profile}", "runs", f"report?{profile}")
    for route in routes:
        usual = page.get(f"/api/{route}")
        assert usual.status_code == 200, usual.text
        for fault in faults(("open", "read", "stat", "list")):
            with injected(fault, run.parents[1]):
                answer = page.get(f"/api/{route}")
            assert answer.status_code in {200, 409}, f"{route}, {fault}: {answer.text}"
            is_said = os.strerror(fault.error) in answer.text or not route.startswith(("source", "mutes"))
            assert answer.data == usual.data or is_said, f"{route}, {fault}: {answer.text}"
    assert contents(run.parent) == before
