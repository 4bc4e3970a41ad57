"""graph-captured-again: what it reports, what that saves, and when it stays quiet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit.testing import findings, matches_of, saving_ns
from tb_tidy_plugin.rules.serving.graph_captured_again import GraphCapturedAgain
from tb_tidy_plugin.trace.kineto import read_trace
from tests.support.written import event, kineto_text, write


def call(name: str, ts: int, dur: int, correlation: int) -> dict[str, Any]:
    return event(name, ts, dur, cat="cuda_runtime", args={"correlation": correlation})


def replay(ts: int, correlation: int) -> list[dict[str, Any]]:
    args = {"correlation": correlation, "device": 0, "stream": 7}
    kernel = event("gemm", ts + 10, 50, cat="kernel", pid=0, tid=7, args=args)
    return [call("cudaGraphLaunch", ts, 5, correlation), kernel]


def capture(ts: int, correlation: int) -> list[dict[str, Any]]:
    return [
        call("cudaStreamBeginCapture_v10000", ts, 1, correlation),
        call("cudaStreamEndCapture", ts + 200, 1, correlation + 1),
        call("cudaGraphInstantiateWithFlags", ts + 210, 90, correlation + 2),
    ]


@pytest.fixture
def again(tmp_path: Path) -> Profile:
    return profile(tmp_path, [*replay(0, 1), *capture(100, 10), *replay(500, 2), *capture(600, 20), *replay(1000, 3)])


def profile(folder: Path, events: list[dict[str, Any]]) -> Profile:
    step = event("ProfilerStep#1", 0, 1100, cat="user_annotation")
    return Profile(read_trace(write(folder / "a.pt.trace.json", kineto_text([step, *events]))))


class TestReports:
    def test_captures_between_replays(self, again: Profile) -> None:
        (finding,) = findings(GraphCapturedAgain, again)
        assert finding.message == (
            "Graphs are captured or instantiated 2 times after the first replay, which takes 600 µs"
        )
        assert finding.cost_ns == 600_000


class TestSaves:
    def test_capture_and_instantiation(self, again: Profile) -> None:
        assert saving_ns(GraphCapturedAgain, again) == (0, 600_000, 600_000)


class TestStaysQuiet:
    def test_captures_before_the_first_replay(self, tmp_path: Path) -> None:
        early = profile(tmp_path, [*capture(0, 10), *capture(400, 20), *replay(800, 1)])
        assert matches_of(GraphCapturedAgain, early) == ()

    def test_a_single_one_later(self, tmp_path: Path) -> None:
        once = profile(tmp_path, [*replay(0, 1), *capture(100, 10), *replay(500, 2)])
        assert matches_of(GraphCapturedAgain, once) == ()

    def test_no_graphs_at_all(self, tmp_path: Path) -> None:
        assert matches_of(GraphCapturedAgain, profile(tmp_path, [event("aten::mm", 1, 2), replay(5, 1)[1]])) == ()
