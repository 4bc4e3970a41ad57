"""`api/ranks`: grows with each rank that is analysed, begins nothing by itself, and is not sent twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.analysis.job import Job
from tb_tidy_plugin.analysis.paths import analyze_path
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.analysis_worker import AnalysisRequest, AnalysisResult
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import RanksAnswer, ReportAnswer
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.system.decoders import decode
from tests.support.recorded_ranks import record
from tests.support.waiting import until

LATE_BY_NS = 7_000_000


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    """Two ranks of three, of which the second comes 7 ms late."""
    for rank, comes_us in enumerate((1000, 8000)):
        record(tmp_path / "run", rank, comes_us, world=3)
    profiles = Profiles([Logdir(str(tmp_path))])
    profiles.start()
    until(lambda: not profiles.scanning)
    return web.create_app(profiles, (), MuteStore(())).test_client()


def ranks(client: FlaskClient) -> RanksAnswer:
    return decode(client.get("/api/ranks?run=run").data, RanksAnswer)


def analyse(client: FlaskClient, *workers: str) -> None:
    for worker in workers:
        rank = worker.removeprefix("host_")
        assert b'"done"' in client.get(f"/api/progress?run=run&worker={worker}&span=1{rank}").get_data()


def test_one_rank_is_nothing_to_compare(client: FlaskClient) -> None:
    assert ranks(client) == RanksAnswer(ranks=None, pending=2)
    analyse(client, "host_0")
    assert ranks(client) == RanksAnswer(ranks=None, pending=1)


def test_is_what_the_command_line_reports(client: FlaskClient, tmp_path: Path) -> None:
    analyse(client, "host_0", "host_1")
    (run,) = analyze_path(tmp_path, Job()).runs
    assert ranks(client) == RanksAnswer(ranks=run.ranks, pending=0)
    assert run.ranks is not None
    assert run.ranks.present == "World size 3: ranks 0, 1 are here, 2 is missing."
    assert [row.arrivals.waited_ns for row in run.ranks.rows if row.arrivals] == [0, LATE_BY_NS]


def test_is_no_part_of_the_report(client: FlaskClient) -> None:
    analyse(client, "host_0", "host_1")
    answer = decode(client.get("/api/report?run=run").data, ReportAnswer)
    assert answer.report.ranks is None
    assert [finding.ranks for finding in answer.report.findings] == [[1]]


def test_is_not_sent_again_to_whoever_has_it(client: FlaskClient) -> None:
    analyse(client, "host_0", "host_1")
    etag = client.get("/api/ranks?run=run").headers["ETag"]
    again = client.get("/api/ranks?run=run", headers={"If-None-Match": etag})
    assert (again.status_code, again.data) == (304, b"")


def test_of_a_run_that_is_not_there(client: FlaskClient) -> None:
    missing = client.get("/api/ranks?run=other")
    assert missing.status_code == 404
    assert "no run `other`" in missing.text
    assert client.get("/api/ranks").status_code == 400


def test_the_worker_sends_little_of_a_rank(tmp_path: Path) -> None:
    from tb_tidy_plugin.plugin.analysis_worker import send_analysis as worker_analyses

    path = record(tmp_path, 0, 1000)
    sent: list[object] = []
    worker_analyses(AnalysisRequest("", "", "", os.fsencode(path)), sent.append)
    assert isinstance(sent[-1], AnalysisResult)
    assert memoryview(sent[-1].summaries).nbytes < 4000
