"""One line that records a job and times the steps that it does not record."""

from __future__ import annotations

import gzip
import json
import mmap
import multiprocessing
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from statistics import median

import pytest
from rich.console import Console

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.capture import faults, profiling, tidy_profile
from tb_tidy_plugin.capture.profiling import Cycle
from tb_tidy_plugin.render.report import report_document
from tb_tidy_plugin.render.terminal import to_text
from tb_tidy_plugin.trace.capture_file import with_capture
from tb_tidy_plugin.trace.columns import PageFaults
from tb_tidy_plugin.trace.kineto import read_trace
from tb_tidy_plugin.words.causes import Cause
from tb_tidy_plugin.words.units import Nanoseconds
from tests.support.captured_job import document_of, traces_in
from tests.support.environments import same_imports

pytestmark = pytest.mark.torch


class Clock:
    """`perf_counter_ns` of a job whose steps take what the test says, and whose profiler takes 1 ms per step."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.calls = 0

    def perf_counter_ns(self) -> int:
        self.calls += 1
        self.now_ns += 1_000_000 * (self.calls % 2 == 0)  # every second look is after the profiler's own work
        return self.now_ns


def work() -> None:
    import torch

    torch.ones(4).add(1)


class TestStepTimes:
    def test_only_whole_steps_that_were_not_recorded_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock()
        durations = [900, 10, 20, 700, 500, 500, 30, 40]  # the first has no beginning, 700 to 500 are the profiler's
        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter_ns", clock.perf_counter_ns)
            patch.setattr(profiling, "machine_speed", lambda: None)  # it would wait for this clock
            with tidy_profile(str(tmp_path), wait=3, warmup=1, active=2) as profile:
                for duration in durations:
                    work()
                    clock.now_ns += duration
                    profile.step()
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["steps"] == {"count": 4, "median_ns": median([10, 20, 30, 40])}

    def test_they_are_in_the_report(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path)) as profile:
            for _ in range(16):
                time.sleep(0.002)
                work()
                profile.step()
        whole = analyze_path(tmp_path, Job())
        ((report,),) = (run.profiles for run in whole.runs)
        assert report.true_step_ns is not None
        assert report.true_step_ns >= 2_000_000
        said = StringIO()
        Console(file=said, width=200).print(to_text(report_document(whole, "text")))
        assert f"recorded; {Nanoseconds(report.true_step_ns)} without the profiler" in " ".join(said.getvalue().split())
        assert report.steps.count == 5
        assert report.settings is not None
        assert set(report.recorded) >= {"stacks", "shapes", "steps"}

    def test_a_job_that_ends_with_the_recording_keeps_what_came_before(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path), wait=4, warmup=1, active=1) as profile:
            for _ in range(6):
                work()
                profile.step()
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["steps"]["count"] == 3

    @pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
    def test_each_cycle_has_its_own_file(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path), wait=1, warmup=1, active=1, repeat=2) as profile:
            for _ in range(8):
                work()
                profile.step()
        assert [document_of(trace)["version"] for trace in traces_in(tmp_path)] == [1, 1]


class TestMarks:
    """The recorded steps, counted in the file itself: what the capture does lies between two of them."""

    OWN = re.compile(r"tb_tidy_plugin/capture/(?!profiling)|getrusage|torch/profiler/profiler\.py")

    def test_the_captures_own_work_is_in_no_step(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path), wait=1, warmup=1, active=3) as profile:
            for _ in range(6):
                work()
                profile.step()
        (trace,) = traces_in(tmp_path)
        events = [each for each in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"] if "dur" in each]
        steps = [each for each in events if each["name"].startswith("ProfilerStep#")]
        assert sorted(each["name"] for each in steps) == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"]
        own = [each for each in events if self.OWN.search(each["name"])]
        assert len(own) > 6, "it is recorded, and named"
        spans = [(each["ts"], each["ts"] + each["dur"]) for each in steps]
        assert not [each["name"] for each in own for begin, end in spans if begin <= each["ts"] < end]
        operators = [each for each in events if each["name"] == "aten::add"]
        assert len([each for each in operators for begin, end in spans if begin <= each["ts"] < end]) == 3

    def test_it_is_an_entry_of_its_own_in_the_ledger(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path), wait=1, warmup=1, active=3) as profile:
            for _ in range(6):
                work()
                profile.step()
        ((report,),) = (run.profiles for run in analyze_path(tmp_path, Job()).runs)
        entries = {entry.cause: entry for entry in report.ledger.entries}
        assert entries[Cause.PROFILER].ns_total > 0
        [owner] = entries[Cause.PROFILER].owners
        assert (owner.own, owner.library, owner.ns) == (None, None, entries[Cause.PROFILER].ns_total)

    def test_a_mark_that_fails_is_said_and_the_job_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        import torch

        def fail(*_: object) -> None:
            raise UserWarning("no mark")

        done = 0
        with monkeypatch.context() as patch:
            patch.setattr(torch.profiler, "record_function", fail)
            with tidy_profile(str(tmp_path), wait=1, warmup=1, active=2) as profile:
                for _ in range(5):
                    work()
                    profile.step()
                    done += 1
        assert done == 5
        assert (
            "the mark of a step could not be captured, so the recording lacks a step: UserWarning: no mark"
            in caplog.text
        )
        assert len(traces_in(tmp_path)) == 1


class TestPageFaults:
    STEPS = ["wait"] * 3 + ["warm up"] + ["recorded"] * 2 + ["later"] * 3

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows does not count them for a process")
    def test_they_are_counted_in_recorded_steps_and_in_others(self, tmp_path: Path) -> None:
        """Recorded steps write to many new pages, the one in which the profiler starts to none, as the others do."""
        pages = {"wait": 0, "warm up": 0, "recorded": 16_384, "later": 0}
        with tidy_profile(str(tmp_path), wait=3, warmup=1, active=2) as profile:
            for kind in self.STEPS:
                with mmap.mmap(-1, (1 + pages[kind]) * mmap.PAGESIZE) as memory:
                    for page in range(pages[kind]):
                        memory[page * mmap.PAGESIZE] = 1
                profile.step()
        (trace,) = traces_in(tmp_path)
        faults = document_of(trace)["faults"]
        assert len(faults["recorded"]) == 2
        assert all(number >= 16_384 > faults["usual"] for number in faults["recorded"])
        assert faults["each_ns"] > 0
        captured = with_capture(read_trace(trace), trace).metadata.captured.faults
        assert captured == PageFaults(tuple(faults["recorded"]), faults["usual"], faults["each_ns"])

    def test_nothing_is_said_where_the_system_counts_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delattr(faults, "resource")
        with tidy_profile(str(tmp_path), wait=3, warmup=1, active=2) as profile:
            for _ in self.STEPS:
                work()
                profile.step()
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["faults"] is None
        assert document_of(trace)["steps"]["count"] == 5


class TestWorkers:
    @pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the time of another process")
    def test_the_processor_time_of_a_loaders_workers_while_steps_are_recorded(self, tmp_path: Path) -> None:
        from tests.support import loading_job  # imports torch, which no other test of this process needs

        command = [sys.executable, "-m", "tests.support.loading_job", str(tmp_path)]
        environment = same_imports()
        subprocess.run(command, env=environment, timeout=300, check=True, capture_output=True)
        workers = {}
        for name in ("sleeping", "computing"):
            (trace,) = traces_in(tmp_path / name)
            workers[name] = document_of(trace)["workers"]
            captured = with_capture(read_trace(trace), trace).metadata.captured
            assert workers[name]["count"] == captured.workers == loading_job.WORKERS
            assert captured.workers_busy == workers[name]["processor_ns"] / (
                loading_job.WORKERS * workers[name]["elapsed_ns"]
            )
        batches = loading_job.RECORDED - loading_job.AHEAD  # which were asked for, and made, while steps were recorded
        assert workers["computing"]["processor_ns"] >= batches * loading_job.BATCH_S * 1e9
        assert workers["sleeping"]["processor_ns"] < workers["sleeping"]["elapsed_ns"] / 2
        (trace,) = traces_in(tmp_path / "beside")
        assert document_of(trace)["workers"] is None, "workers of another loader have nothing to do"

    def test_other_processes_are_not_counted(self, tmp_path: Path) -> None:
        other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
        other.start()
        try:
            with tidy_profile(str(tmp_path), wait=1, warmup=1, active=2) as profile:
                for _ in range(5):
                    work()
                    profile.step()
        finally:
            other.kill()
            other.join()
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["workers"] is None


class TestFewSteps:
    @pytest.mark.parametrize(
        ("steps", "fitted"),
        [
            (100, Cycle(5, 2, 5)),
            (12, Cycle(5, 2, 5)),
            (10, Cycle(3, 2, 5)),
            (7, Cycle(0, 2, 5)),
            (5, Cycle(0, 2, 3)),
            (4, Cycle(0, 2, 2)),
            (2, Cycle(0, 1, 1)),
            (1, Cycle(0, 0, 1)),
        ],
    )
    def test_the_cycle_is_cut_to_fit(self, steps: int, fitted: Cycle) -> None:
        assert Cycle().within(steps) == fitted

    def test_and_then_records(self, tmp_path: Path) -> None:
        with tidy_profile(str(tmp_path), steps=4) as profile:
            for _ in range(4):
                work()
                profile.step()
        assert len(traces_in(tmp_path)) == 1

    @pytest.mark.parametrize(
        ("steps", "said"),
        [
            (0, "0 steps were marked, and recording takes 12. Run more steps, or pass their number"),
            (1, "1 step was marked, and recording takes 12. Run more steps"),
            (6, "6 steps were marked, and recording takes 12. Run more steps"),
        ],
    )
    def test_too_few_are_said(self, steps: int, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with tidy_profile(str(tmp_path)) as profile:
            for _ in range(steps):
                profile.step()
        assert f"nothing was recorded: {said}" in caplog.text
        assert f"`steps={max(steps, 1)}`." in caplog.text
        assert list(tmp_path.iterdir()) == []


class TestNothingBreaksTheJob:
    def test_beside_another_profiler_the_job_goes_on(self, tmp_path: Path) -> None:
        """Torch says that there can be one only, in some versions by an error and in some by a line on the console."""
        import torch

        done = []
        with (
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
            tidy_profile(str(tmp_path), wait=0, warmup=1, active=2) as profile,
        ):
            for number in range(4):
                work()
                profile.step()
                done.append(number)
        assert done == [0, 1, 2, 3]

    def test_a_profiler_that_fails_on_its_way(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """Stopped in this state, it would end the process."""

        def fail() -> None:
            raise UserWarning("the second cycle begins")

        with tidy_profile(str(tmp_path), wait=0, warmup=1, active=1, repeat=2) as profile:
            for number in range(6):
                work()
                if number == 1:
                    for actions in profile.profiler.action_map.values():
                        actions[:] = [fail if "prepare_trace" in str(action) else action for action in actions]
                profile.step()
        assert "the second cycle begins" in caplog.text
        assert len(traces_in(tmp_path)) == 1
        with tidy_profile(str(tmp_path), wait=0, warmup=1, active=1) as profile:
            for _ in range(3):
                work()
                profile.step()
        assert len(traces_in(tmp_path)) == 2, "the next one runs"

    def test_a_folder_that_cannot_be(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "file").touch()
        done = 0
        with tidy_profile(str(tmp_path / "file" / "runs"), wait=0, warmup=1, active=1) as profile:
            for done in range(1, 6):  # noqa: B007 - counted for the test
                work()
                profile.step()
        assert done == 5
        assert "Can't create directory" in caplog.text

    def test_an_error_of_the_job_is_the_jobs(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError), tidy_profile(str(tmp_path)):
            1 / 0  # noqa: B018
        with tidy_profile(str(tmp_path), wait=0, warmup=1, active=1) as profile:
            for _ in range(3):
                work()
                profile.step()
        assert len(traces_in(tmp_path)) == 1, "the profiler was ended, and the next one runs"

    def test_memory_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(profiling, "MOST_TIMES", 3)
            with tidy_profile(str(tmp_path), wait=20, warmup=1, active=1) as profile:
                for _ in range(23):
                    work()
                    profile.step()
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["steps"]["count"] == 3

    def test_arguments_that_torch_does_not_know_are_said_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError), tidy_profile(str(tmp_path), with_stacks=True):
            pass
