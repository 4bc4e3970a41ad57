"""A short load in each test run; `make load` makes the long one, whose figures are in docs/load.md."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.load.readers import children_of, read, write_long
from tests.support.logdirs import trace
from tests.support.served import API, Served, needs_the_installed_plugin, tensorboard
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them"),
]

OTHERS = ("torch_profiler",)
RUNS = 200
KEY = "run=run&worker=w&span="
LONG_BYTES = 15_000_000  # a second of work, of which a test needs the first half


@pytest.fixture(autouse=True, scope="module")
def _installed() -> None:
    needs_the_installed_plugin()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def board(logs: Path, tmp_path: Path) -> Iterator[Served]:
    """On one short recording; a cache of its own."""
    trace(logs / "run" / "w.pt.trace.json")
    flags = ("--logdir", str(logs), "--torchtidy_cache", str(tmp_path / "cache"))
    with tensorboard(*flags, folder=tmp_path, without=OTHERS) as served:
        yield served


def state(board: Served) -> str:
    """Of the one profile."""
    return str(board.api("runs")["runs"][0]["profiles"][0]["state"])


def begin(board: Served) -> None:
    board.api(f"report?{KEY}")


def test_two_hundred_runs_are_all_listed_and_each_can_be_opened(logs: Path, tmp_path: Path) -> None:
    for number in range(RUNS):
        trace(logs / f"run_{number:03}" / "w.pt.trace.json")
    with tensorboard("--logdir", str(logs), folder=tmp_path, without=OTHERS) as board:
        assert until(lambda: len(board.runs()) == RUNS)
        assert board.analysed("run=run_199&worker=w&span=")["states"][0]["state"] == "done"


class TestReaders:
    """Fifty at once, while a long recording is analysed."""

    def test_nobody_meets_an_error_and_the_analysis_comes_to_its_end(self, logs: Path, tmp_path: Path) -> None:
        events = write_long(logs / "run" / "w.pt.trace.json", LONG_BYTES)
        questions = (f"{API}/runs", f"{API}/rules", f"{API}/report?{KEY}", "data/environment", "data/runs")
        with tensorboard("--logdir", str(logs), folder=tmp_path, without=OTHERS) as board:
            begin(board)
            found = read(board.address, questions, readers=50, for_s=5.0, pause_s=0.2)
            assert [error for each in found.values() for error in each.errors] == []
            assert all(each.seconds for each in found.values())
            [profile] = board.analysed(KEY)["report"]["profiles"]
            assert profile["events"] == events
            assert "Traceback" not in board.log.read_text()


class TestWorkerKilled:
    """In mid-analysis, by the kernel or an administrator."""

    @pytest.fixture
    def busy(self, logs: Path, tmp_path: Path) -> Iterator[Served]:
        write_long(logs / "run" / "w.pt.trace.json", LONG_BYTES)
        flags = ("--logdir", str(logs), "--torchtidy_cache", "off", "--load_fast", "false")
        with tensorboard(*flags, folder=tmp_path, without=OTHERS) as served:
            begin(served)
            yield served

    def kill(self, board: Served, unlike: int = 0) -> int:
        """Kills the worker, another than `unlike`, while it reads."""
        worker = until(lambda: [each for each in children_of(board.process.pid) if each != unlike])[0]
        time.sleep(0.3)  # so that it is at work
        os.kill(worker, signal.SIGKILL)
        return worker

    def test_once_it_is_tried_again_and_done(self, busy: Served) -> None:
        self.kill(busy)
        assert busy.analysed(KEY)["states"][0]["state"] == "done"

    def test_twice_it_is_said_and_tensorboard_goes_on(self, busy: Served) -> None:
        self.kill(busy, unlike=self.kill(busy))
        [failed] = busy.analysed(KEY)["states"]
        assert failed["state"] == "error"
        assert "killed twice" in failed["problem"]["error"]
        assert busy.get("data/environment").status == 200


class TestFiles:
    """That change while they are open, or whose clock was set."""

    def test_a_recording_that_is_deleted_in_mid_analysis_leaves_the_list(self, logs: Path, tmp_path: Path) -> None:
        path = logs / "run" / "w.pt.trace.json"
        write_long(path, LONG_BYTES)
        with tensorboard("--logdir", str(logs), folder=tmp_path, without=OTHERS) as board:
            begin(board)
            path.unlink()
            assert until(lambda: board.runs() == [])
            assert board.get(f"{API}/report?{KEY}").status == 404

    def test_one_that_is_cut_off_in_mid_analysis_is_read_as_it_is_then(self, logs: Path, tmp_path: Path) -> None:
        path = logs / "run" / "w.pt.trace.json"
        whole = write_long(path, LONG_BYTES)
        with tensorboard("--logdir", str(logs), folder=tmp_path, without=OTHERS) as board:
            begin(board)
            os.truncate(path, LONG_BYTES // 2)
            until(lambda: board.api("runs")["runs"][0]["profiles"][0]["size"] == LONG_BYTES // 2)
            [profile] = board.analysed(KEY)["report"]["profiles"]
            assert 0 < profile["events"] < whole
            assert board.analysed(KEY)["states"][0]["problem"]["recovered_events"] == profile["events"]

    @pytest.mark.parametrize("seconds", [-30 * 365 * 86_400, 10 * 365 * 86_400], ids=["past", "future"])
    def test_a_change_is_seen_whatever_the_clock_said(self, board: Served, logs: Path, seconds: int) -> None:
        assert board.analysed(KEY)["report"]["profiles"][0]["events"] == 7
        path = trace(logs / "run" / "w.pt.trace.json", operators=9)
        os.utime(path, (time.time() + seconds,) * 2)
        until(lambda: state(board) == "queued")
        assert board.analysed(KEY)["report"]["profiles"][0]["events"] == 13

    def test_a_logdir_that_is_removed_and_comes_back(self, board: Served, logs: Path) -> None:
        assert board.analysed(KEY)["states"][0]["state"] == "done"
        shutil.rmtree(logs)
        until(lambda: board.runs() == [])
        assert board.get(f"{API}/report?{KEY}").status == 404
        assert board.get("data/environment").status == 200
        trace(logs / "run" / "w.pt.trace.json", operators=5)
        until(lambda: board.runs() == ["run"])
        assert board.analysed(KEY)["report"]["profiles"][0]["events"] == 9
        assert "Traceback" not in board.log.read_text()

    def test_one_that_is_replaced_by_another_of_the_same_size_and_time_is_read_anew(
        self, board: Served, logs: Path
    ) -> None:
        path = logs / "run" / "w.pt.trace.json"
        before = path.stat()
        assert board.analysed(KEY)["report"]["profiles"][0]["steps"]["items"][0]["name"] == "ProfilerStep#1"
        path.write_text(path.read_text().replace("ProfilerStep#1", "ProfilerStep#7"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        until(lambda: state(board) == "queued")
        assert board.analysed(KEY)["report"]["profiles"][0]["steps"]["items"][0]["name"] == "ProfilerStep#7"
