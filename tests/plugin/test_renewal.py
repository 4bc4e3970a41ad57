"""What is measured gets into the report: by a second analysis of the same recording, for which nobody has to ask."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.store import keep
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import BenchmarkRequest, BenchmarksAnswer, ProfileState, ReportAnswer
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.plugin.scan import Key
from tb_tidy_plugin.report.model import Finding, ProfileReport
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.system.decoders import decode
from tests.plugin.test_benchmark_queue import ENDLESS
from tests.support.measurements import measurement
from tests.support.recordings import ROOT
from tests.support.waiting import until

SAMPLE = "image_classifier_untidy"
RULE = "optimizer-single-tensor"


class Board:
    """`Profiles` of one recording, and the web API in front of it."""

    def __init__(self, logdir: Path, queue: BenchmarkQueue) -> None:
        self.profiles = Profiles([Logdir(str(logdir))])
        self.profiles.start()
        until(lambda: not self.profiles.scanning)
        (run,) = self.profiles.runs().runs
        (profile,) = run.profiles
        self.key = Key(run.run, profile.worker, profile.span)
        self.query = {"run": self.key.run, "worker": self.key.worker, "span": self.key.span}
        self._client: FlaskClient = web.create_app(self.profiles, (), MuteStore(()), queue).test_client()

    def analysed(self) -> tuple[ProfileState, ProfileReport]:
        """The state and the report once there is nothing to wait for."""
        list(self.profiles.progress(self.key))
        answer = decode(self._client.get("/api/report", query_string=self.query).data, ReportAnswer)
        return answer.states[0], answer.report.profiles[0]

    def benchmarks(self) -> BenchmarksAnswer:
        return decode(self._client.get("/api/benchmarks", query_string=self.query).data, BenchmarksAnswer)


@pytest.fixture
def logdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a space in its name; measurements are kept beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(ROOT / "sample_runs" / SAMPLE, tmp_path / "my runs" / SAMPLE)
    return tmp_path / "my runs"


def finding_of(report: ProfileReport) -> Finding:
    (found,) = [finding for finding in report.findings if finding.rule == RULE]
    return found


def measured_elsewhere(answer: BenchmarksAnswer, finding: str) -> None:
    """As `tb-tidy bench` does in a shell: half of the time is left."""
    statements = answer.findings[finding]
    keep(measurement(RULE, Benchmark(statements.before, statements.after, statements.setup)))


@pytest.mark.slow
def test_a_measurement_that_the_report_lacks_has_it_made_again_once(logdir: Path) -> None:
    board = Board(logdir, BenchmarkQueue())
    before, report = board.analysed()
    finding = finding_of(report)
    assert finding.saving is not None
    assert finding.saving.basis == ["replayed"]
    answer = board.benchmarks()
    assert (answer.kind, answer.measurements, answer.findings[finding.id].of_events) == ("cpu", {}, True)
    assert answer.findings[finding.id].devices == []
    assert board.analysed()[0] == before, "nothing is new"
    measured_elsewhere(answer, finding.id)
    assert list(board.benchmarks().measurements) == [finding.id]
    after, report = board.analysed()
    assert after.version > before.version
    assert after.recording == before.recording
    renewed = finding_of(report)
    assert renewed.saving is not None
    assert report.joint_saving is not None
    assert renewed.measurement == board.benchmarks().measurements[finding.id]
    assert (renewed.saving.basis, report.joint_saving.basis) == (["replayed", "measured"], ["replayed", "measured"])
    assert renewed.saving.expected_ns < finding.saving.expected_ns, "half of it stays"
    assert board.analysed()[0] == after, "the report has it now"


@pytest.mark.slow
def test_nothing_is_analysed_while_something_is_measured(logdir: Path) -> None:
    queue = BenchmarkQueue(None)
    board = Board(logdir, queue)
    before, report = board.analysed()
    measured_elsewhere(board.benchmarks(), finding_of(report).id)
    job = queue.add(
        BenchmarkRequest(run="another", worker="w", span="", finding="f"), MeasuringRequest(rule="r", pair=ENDLESS)
    ).job
    board.benchmarks()
    assert board.analysed()[0] == before
    queue.cancel(job)
    list(queue.progress(job))
    board.benchmarks()
    assert board.analysed()[0].version > before.version


@pytest.mark.slow
def test_the_command_for_a_shell_names_the_trace(logdir: Path) -> None:
    board = Board(logdir, BenchmarkQueue())
    board.analysed()
    (trace,) = (logdir / SAMPLE).glob("*.pt.trace.json.gz")
    answer = board.benchmarks()
    assert answer.command == f"tb-tidy bench '{trace}'"
    assert answer.refusal is not None
    assert answer.refusal.reason == "off"


@pytest.mark.slow
def test_what_came_of_the_earlier_analysis_is_the_answer_meanwhile(logdir: Path) -> None:
    profiles = Board(logdir, BenchmarkQueue()).profiles
    (run,) = profiles.runs().runs
    key = Key(run.run, run.profiles[0].worker, run.profiles[0].span)
    profiles.renew(key, "not analysed at all yet, so this is of no use")
    assert profiles.runs().runs == [run]
    list(profiles.progress(key))
    old = profiles.kept(key, 0)
    profiles.renew(key, "a measurement")
    assert profiles.kept(key, 0) is old
    list(profiles.progress(key))
    assert profiles.kept(key, 0) is not old
