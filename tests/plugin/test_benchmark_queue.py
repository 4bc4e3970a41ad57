"""Benchmarks from the tab: who may start them, one at a time, watched and cancelled; never by a GET."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tb_tidy_plugin.benchmarks.process import MeasuringRequest
from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.benchmark_queue import (
    OFF,
    REACHABLE,
    WITHOUT_TORCH,
    BenchmarkQueue,
    BenchmarksRefusedError,
    refusal_of,
)
from tb_tidy_plugin.plugin.models import BenchmarkRefusal, BenchmarkRequest, BenchmarkState
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.rulekit import Benchmark
from tb_tidy_plugin.system.decoders import decode
from tb_tidy_plugin.words.errors import NotFoundError
from tests.support.measurements import PAIR

ASKED = BenchmarkRequest(run="run", worker="w", span="1", finding="f", device="cpu", budget_s=0.05)
ENDLESS = Benchmark("while True:\n    pass", "x", "import torch\nx = 1")
OURS = {"X-TorchTidy": "1"}


def about(finding: str) -> BenchmarkRequest:
    return msgspec.structs.replace(ASKED, finding=finding)


def of(pair: Benchmark) -> MeasuringRequest:
    return MeasuringRequest(rule="some-rule", pair=pair, asked=ASKED.device, budget_s=ASKED.budget_s)


@pytest.mark.parametrize(
    ("flag", "host", "bind_all", "refusal"),
    [
        ("", "", False, OFF),
        ("yes", "", False, OFF),
        ("local", "", False, None),
        ("local", "localhost", False, None),
        ("local", "127.0.0.1", False, None),
        ("local", "", True, REACHABLE),
        ("local", "0.0.0.0", False, REACHABLE),
        ("local", "10.0.0.7", False, REACHABLE),
        ("any", "0.0.0.0", True, None),
    ],
)
def test_who_may_start_them(flag: str, host: str, bind_all: bool, refusal: BenchmarkRefusal | None) -> None:
    assert refusal_of(flag, host, bind_all=bind_all, has_torch=True) == refusal


@pytest.mark.parametrize(("flag", "refusal"), [("", OFF), ("local", WITHOUT_TORCH), ("any", WITHOUT_TORCH)])
def test_without_pytorch_it_says_how_to_get_it(flag: str, refusal: BenchmarkRefusal) -> None:
    assert refusal_of(flag, "localhost", bind_all=False, has_torch=False) == refusal
    assert "tb-tidy-plugin[bench]" in WITHOUT_TORCH.advice


def test_nothing_is_run_where_it_is_off() -> None:
    with pytest.raises(BenchmarksRefusedError, match="Benchmarks are off"):
        BenchmarkQueue().add(ASKED, of(PAIR))


def test_no_benchmark_of_that_number() -> None:
    with pytest.raises(NotFoundError):
        BenchmarkQueue(None).cancel(7)
    with pytest.raises(NotFoundError):
        BenchmarkQueue(None).progress(7)


def test_a_queue_has_an_end() -> None:
    queue = BenchmarkQueue(None)
    jobs = [queue.add(about(f"f{number}"), of(ENDLESS)).job for number in range(20)]
    with pytest.raises(BenchmarksRefusedError, match="already waiting"):
        queue.add(about("one more"), of(ENDLESS))
    for job in reversed(jobs):
        queue.cancel(job)
    assert {list(queue.progress(job))[-1].state for job in jobs} == {"cancelled"}


def test_two_tabs_that_ask_for_the_same_finding_get_the_same_benchmark() -> None:
    queue = BenchmarkQueue(None)
    first = queue.add(ASKED, of(ENDLESS))
    assert queue.add(ASKED, of(ENDLESS)).job == first.job
    assert [each.job for each in queue.states("run", "w", "1")] == [first.job]
    queue.cancel(first.job)
    assert list(queue.progress(first.job))[-1].state == "cancelled"
    again = queue.add(ASKED, of(ENDLESS))
    assert again.job != first.job
    queue.cancel(again.job)


def test_who_waits_knows_how_many_come_first_and_leaves_the_queue_at_once() -> None:
    queue = BenchmarkQueue(None)
    running, second, third = (queue.add(about(finding), of(ENDLESS)) for finding in "abc")
    assert [running.ahead, second.ahead, third.ahead] == [0, 1, 2]
    watched = queue.progress(third.job)
    assert next(watched).ahead == 2
    assert queue.cancel(second.job).state == "cancelled", "while the first is still measured"
    assert next(state for state in watched if state.ahead < 2).ahead == 1
    assert queue.is_busy
    for each in (third, running):
        queue.cancel(each.job)
    assert list(queue.progress(running.job))[-1].state == "cancelled"
    assert not queue.is_busy


@pytest.mark.slow
@pytest.mark.torch
def test_one_after_the_other_each_watched_to_its_end() -> None:
    queue = BenchmarkQueue(None)
    first, second = queue.add(ASKED, of(PAIR)), queue.add(about("g"), of(PAIR))
    seen = list(queue.progress(first.job))
    assert [each.state for each in queue.states("run", "w", "1")] in (["done", "queued"], ["done", "measuring"])
    assert (seen[-1].state, seen[-1].measurement is not None) == ("done", True)
    assert list(queue.progress(second.job))[-1].state == "done"


def test_only_the_tab_itself_may_post_and_a_get_starts_nothing(tmp_path: Path) -> None:
    queue = BenchmarkQueue(None)
    client = web.create_app(Profiles([]), (), MuteStore(()), queue).test_client()
    asked = msgspec.to_builtins(ASKED)
    assert client.post("/api/benchmarks", json=asked).status_code == 403
    assert (
        client.post("/api/benchmarks", json=asked, headers=OURS | {"Sec-Fetch-Site": "cross-site"}).status_code == 403
    )
    assert client.post("/api/benchmarks", json=asked, headers=OURS).status_code == 404, "there is no such trace"
    assert client.post("/api/benchmarks", json=asked | {"budget_s": 1e9}, headers=OURS).status_code == 400
    assert client.post("/api/benchmarks", json=asked | {"before": "1"}, headers=OURS).status_code == 400
    assert client.get("/api/benchmarks/cancel").status_code == 404
    assert queue.states("run", "w", "1") == []


def test_cancelled_and_watched_over_http() -> None:
    queue = BenchmarkQueue(None)
    client = web.create_app(Profiles([]), (), MuteStore(()), queue).test_client()
    job = queue.add(ASKED, of(ENDLESS)).job
    assert client.post("/api/benchmarks/cancel", json={"job": job}).status_code == 403
    assert client.post("/api/benchmarks/cancel", json={"job": job}, headers=OURS).status_code == 200
    lines = client.get(f"/api/benchmarks/progress?job={job}").data.splitlines()
    assert decode(lines[-1], BenchmarkState).state == "cancelled"
