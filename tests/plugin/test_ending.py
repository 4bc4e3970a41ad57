"""Processes end with the TensorBoard that started them, however that ends: readers, benchmarks, comparisons."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest

from tb_tidy_plugin.plugin import comparison_worker, timeline_worker
from tb_tidy_plugin.system import child
from tests.load.readers import children_of, write_long
from tests.support.recordings import ROOT
from tests.support.served import API, Served, needs_the_installed_plugin, tensorboard
from tests.support.waiting import PATIENCE_S, until

SAMPLE = ROOT / "sample_runs" / "image_classifier_untidy"
LONG_BYTES = 40_000_000
FLAGS = ("--torchtidy_cache", "off", "--torchtidy_benchmarks", "local", "--load_fast", "false")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked at as Linux shows them")


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with findings, and one that is read for seconds."""
    folder = tmp_path_factory.mktemp("ending")
    shutil.copytree(SAMPLE, folder / "short")
    write_long(folder / "long" / "w.pt.trace.json", LONG_BYTES)
    return folder


def keep_busy(board: Served) -> None:
    """Has a timeline held, a benchmark run for a minute, and the long recording read."""
    [run] = (run for run in board.api("runs")["runs"] if run["run"] == "short")
    asked = {"run": "short", **{name: run["profiles"][0][name] for name in ("worker", "span")}}
    key = urlencode(asked)
    board.analysed(key)
    board.api(f"timeline/lanes?{key}")
    finding = next(iter(board.api(f"benchmarks?{key}")["findings"]))
    body = json.dumps({**asked, "finding": finding, "budget_s": 60}).encode()
    headers = {"X-TorchTidy": "1", "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{board.address}{API}/benchmarks", body, headers)).close()
    board.api("report?run=long&worker=w&span=")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_nothing_is_left_of_a_tensorboard_that_was_busy(logs: Path, tmp_path: Path, how: signal.Signals) -> None:
    needs_the_installed_plugin()
    with tensorboard("--logdir", str(logs), *FLAGS, folder=tmp_path, without=("torch_profiler",)) as board:
        keep_busy(board)
        children = until(lambda: found if len(found := children_of(board.process.pid)) >= 3 else [])
        board.process.send_signal(how)
        board.process.wait(PATIENCE_S)
        until(lambda: not any(map(is_alive, children)))


SLOW_COMPARISON = "from tb_tidy_plugin.plugin import comparison_worker as it; it._answer_to = wait"
SLOW_TIMELINE = "from tb_tidy_plugin.plugin import timeline_worker as it; it.read_timeline = wait"
NOTHING = comparison_worker.SideAsked("", [], 0, "", [])
COMPARE = comparison_worker.ComparisonQuestion(NOTHING, NOTHING)
TIMELINE = timeline_worker.FileQuestion(b"w.json", "", timeline_worker.LanesQuestion())


@pytest.mark.parametrize(("module", "question"), [(SLOW_COMPARISON, COMPARE), (SLOW_TIMELINE, TIMELINE)])
def test_in_the_middle_of_an_answer_a_process_ends_with_its_input(
    tmp_path: Path, module: str, question: msgspec.Struct
) -> None:
    begun = tmp_path / "begun"
    wait = f"import pathlib, time; wait = lambda *_: (pathlib.Path({str(begun)!r}).touch(), time.sleep(60))"
    code = f"import sys; sys.path[:] = sys.argv[1:]; {wait}; {module}; it.main()"
    with child.complaints() as errors, child.start((sys.executable, "-c", code), errors) as process:
        child.send_line(process, msgspec.json.encode(question))
        until(begun.exists)
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        process.wait(PATIENCE_S)
