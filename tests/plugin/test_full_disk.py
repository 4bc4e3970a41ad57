"""A disk that takes nothing more: what was there stays, findings and measurements are shown, and it is said."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tb_tidy_plugin.benchmarks import runner
from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.benchmarks.store import cached
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.benchmark_queue import BenchmarkQueue
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import BenchmarkRequest
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.trace.cache import Cache
from tests.support.full_disk import full_disk
from tests.support.logdirs import trace
from tests.support.measurements import MEASURED_AT_ONCE, PAIR, measurement
from tests.support.profiles import LIMIT_S, RUN, finished, started
from tests.support.waiting import until

OURS = {"X-TorchTidy": "1"}


@pytest.fixture(autouse=True)
def _nobody_looked_for_a_folder_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python tries once where files that have no name can be written."""
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.usefixtures("always_looks_again")
def test_findings_are_shown_all_the_same_and_kept_once_there_is_room(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = Cache(tmp_path / "cache")
    profiles = started(path.parents[1], cache=cache)
    with full_disk():
        assert (finished(profiles).state, finished(profiles).problem) == ("done", None)
        assert profiles.kept(RUN, LIMIT_S).result.report.findings[0].matches == 3
    assert f"Nothing is cached in {cache.folder}: File too large. Everything else works." in caplog.messages
    assert not any((tmp_path / "cache").iterdir()), "nothing half written is left"
    trace(path, operators=7)
    profiles.report("run")
    assert finished(profiles).state == "done"
    assert until(cache.entries)


def test_mutes_stay_as_they_were(tmp_path: Path) -> None:
    page = web.create_app(Profiles([]), (), MuteStore([Logdir(str(tmp_path))])).test_client()
    muted = {"mute": {"findings": ["a1"], "rules": []}, "unmute": {"findings": [], "rules": []}}
    assert page.post("/api/mutes", json=muted, headers=OURS).status_code == 200
    before = (tmp_path / ".torchtidy.json").read_bytes()
    with full_disk():
        refused = page.post("/api/mutes", json={**muted, "mute": {"findings": ["b2"], "rules": []}}, headers=OURS)
        assert json.loads(page.get("/api/mutes").data)["mutes"]["findings"] == ["a1"]
    assert (refused.status_code, "cannot be written: File too large." in refused.text) == (409, True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {".torchtidy.json": before}


def test_what_was_measured_is_shown_and_said_not_to_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(runner, "BENCHMARK_COMMAND", MEASURED_AT_ONCE)
    queue, asked = BenchmarkQueue(None), BenchmarkRequest(run="run", worker="w", span="1", finding="f")
    with full_disk():
        *_, last = queue.progress(queue.add(asked, MeasuringRequest(rule="some-rule", pair=PAIR)).job)
    assert (last.state, last.measurement) == ("done", measurement())
    assert last.problem is not None
    assert "could not be written: File too large. The result is shown until the server ends" in last.problem.message
    assert cached("some-rule", PAIR) == []
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
