"""The page beside other tools, without these: they are installed by `make bench` only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.performance import peers
from tests.performance.traces import Trace
from tests.support.logdirs import trace


@pytest.fixture
def recording(tmp_path: Path) -> Trace:
    path = trace(tmp_path / "run" / "w.pt.trace.json")
    return Trace("tiny", path, path.stat().st_size)


def test_each_tool_has_a_row_that_compares_it_with_ours(recording: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", (peers.Tool("another", "", "nothing", "import sys; open(sys.argv[1]).read()"),))
    text = peers.page([recording], {}, rounds=1)
    rows = dict(re.findall(r"^\| ([\w, .-]+) \| [\d.]+ \| [\d.]+–[\d.]+ \| ([\d.]+) × \|", text, re.MULTILINE))
    assert rows.keys() == {peers.TORCHTIDY.name, peers.CACHED.name, "another"}
    assert rows[peers.TORCHTIDY.name] == "1.0"


def test_a_tool_that_fails_ends_the_measurement(recording: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", (peers.Tool("another", "", "nothing", "raise SystemExit('broken')"),))
    with pytest.raises(subprocess.CalledProcessError):
        peers.page([recording], {}, rounds=1)
