"""Both tabs give the same names to runs, workers and spans, where both plugins are installed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from urllib.parse import quote

import pytest

from tests.support.recordings import shared
from tests.support.served import Served, needs_the_installed_plugin, tensorboard
from tests.support.waiting import until
from tests.support.written import write

pytestmark = pytest.mark.slow

LIMIT_S = 120.0
THEIRS = "data/plugin/pytorch_profiler"
VIEW = "Operator"
NO_SPAN = "default"

FILES = (
    "alone.pt.trace.json",
    "one/host_1.1619499959628.pt.trace.json",
    "several/host_1.1795229710790778815.pt.trace.json",
    "several/host_1.1619499959628.pt.trace.json.gz",
    "several/host_1.1619499959627.pt.trace.json",
    "several/rank.0.5.pt.trace.json",
    "below/it/no_span.pt.trace.json",
    "below/it/host.with.dots.12.pt.trace.json",
)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    needs_the_installed_plugin()
    if not any(point.name == "torch_profiler" for point in entry_points(group="tensorboard_plugins")):
        pytest.skip("torch-tb-profiler is not installed")
    folder = tmp_path_factory.mktemp("both")
    recorded = gzip.decompress(shared("parity/mm_fp32/trace.pt.trace.json.gz").read_bytes())
    for name in FILES:
        (folder / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / "logs" / name, recorded)
    with tensorboard("--logdir", str(folder / "logs"), folder=folder) as served:
        until(lambda: len(theirs(served)) == 4, LIMIT_S)
        yield served


def theirs(board: Served) -> list[str]:
    found = board.get(f"{THEIRS}/runs").json()
    return [] if found["loading"] else list(found["runs"])


def test_runs(board: Served) -> None:
    assert sorted(board.runs()) == sorted(theirs(board)) == ["below/it", "logs", "one", "several"]


def test_workers_and_spans(board: Served) -> None:
    for run in board.api("runs")["runs"]:
        ours: dict[str, list[str]] = {}
        for profile in run["profiles"]:
            index = profile["span_index"]
            ours.setdefault(profile["worker"], []).append(NO_SPAN if index is None else str(index))
        query = f"run={quote(run['run'], safe='')}"
        workers = board.get(f"{THEIRS}/workers?{query}&view={VIEW}").json()
        assert sorted(ours) == workers
        for worker in workers:
            spans = json.loads(board.get(f"{THEIRS}/spans?{query}&worker={worker}").body)
            assert ours[worker] == spans, (run["run"], worker)
