"""`api/compare`: two runs, or some steps of one, worked out in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.plugin import comparisons, routes
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.profiles import Profiles
from tests.support.serving import served
from tests.support.step_recordings import recording
from tests.support.workers import script


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`base` takes 2 ms a step, `candidate` 1.2 ms; `slow` is `base` with one step of 3 ms; `ranks` has one of each."""
    root = tmp_path_factory.mktemp("compare")
    recording(root / "base", 1000)
    recording(root / "candidate", 200)
    recording(root / "slow", 1000, slow_step=4)
    recording(root / "ranks", 1000, worker="rank0")
    recording(root / "ranks", 200, worker="rank1")
    recording(root / "half", 1000)
    (root / "broken").mkdir()
    for broken in ("broken/w.pt.trace.json", "half/rank1.pt.trace.json"):
        (root / broken).write_text("{")
    return root


@pytest.fixture(scope="module")
def client(logs: Path) -> FlaskClient:
    return served(Profiles([Logdir(str(logs))]))


def answer(client: FlaskClient, query: str, code: int = 200) -> Any:  # noqa: ANN401 - any JSON
    response = client.get(f"/api/compare?{query}")
    assert response.status_code == code, response.text
    return response.json


def error(client: FlaskClient, query: str, code: int) -> str:
    found = answer(client, query, code)["error"]
    assert found["advice"]
    message: str = found["message"]
    return message


def test_two_runs(client: FlaskClient) -> None:
    found = answer(client, "base=base&candidate=candidate")
    comparison = found["comparison"]
    assert comparison["verdict"] == "faster"
    assert comparison["step_ratio"]["value"] == pytest.approx(1202.5 / 2002.5)
    assert (comparison["base"]["path"], comparison["candidate"]["path"]) == ("base", "candidate")
    assert [(row["name"], row["base_ns"], row["candidate_ns"]) for row in comparison["operators"]] == [
        ("aten::mm", 1_000_000, 200_000)
    ]
    assert (found["operators"], found["kernels"], found["offset"]) == (1, 0, 0)


def test_steps_of_one_run_against_others(client: FlaskClient) -> None:
    comparison = answer(client, "base=slow&base_steps=1-3&candidate=slow&candidate_steps=4")["comparison"]
    assert (comparison["base"]["steps"], comparison["base"]["chosen"]) == (3, "1-3")
    assert (comparison["candidate"]["steps"], comparison["candidate"]["chosen"]) == (1, "4")
    [row] = comparison["operators"]
    assert (row["base_calls"], row["candidate_calls"]) == (1, 2)
    assert (row["base_ns"], row["candidate_ns"]) == (1_000_000, 2_000_000)


@pytest.mark.parametrize(("rank", "median_ns"), [("rank0", 2_002_500), ("rank1", 1_202_500), ("1", 1_202_500)])
def test_one_rank_by_its_worker_or_its_number(client: FlaskClient, rank: str, median_ns: int) -> None:
    comparison = answer(client, f"base=ranks&base_rank={rank}&candidate=base")["comparison"]
    assert (comparison["base"]["profiles"], comparison["base"]["median_ns"]) == (1, median_ns)


def test_all_ranks_where_none_is_named(client: FlaskClient) -> None:
    comparison = answer(client, "base=ranks&candidate=base")["comparison"]
    assert (comparison["base"]["profiles"], comparison["base"]["steps"]) == (2, 12)
    assert "Different ranks: 2 against 1." in comparison["notes"]


def test_only_operators_that_were_looked_for(client: FlaskClient) -> None:
    query = "base=base&candidate=candidate&q="
    assert answer(client, f"{query}MM")["operators"] == 1
    found = answer(client, f"{query}conv")
    assert (found["operators"], found["comparison"]["operators"]) == (0, [])


def test_one_page_of_operators(client: FlaskClient) -> None:
    found = answer(client, "base=base&candidate=candidate&offset=1&limit=1")
    assert (found["operators"], found["offset"], found["comparison"]["operators"]) == (1, 1, [])


def test_the_same_answer_is_not_sent_twice(client: FlaskClient) -> None:
    first = client.get("/api/compare?base=base&candidate=candidate")
    again = client.get("/api/compare?base=base&candidate=candidate", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("query", "code", "sentence"),
    [
        ("candidate=base", 400, "The query has no `base`."),
        ("base=base", 400, "The query has no `candidate`."),
        ("base=base&candidate=none", 404, "There is no run `none` in the logdir."),
        ("base=base&candidate=base&base_rank=7", 404, "The run `base` has no rank `7`."),
        ("base=base&candidate=base&base_steps=x", 400, "`x` is not a range of steps."),
        ("base=base&candidate=base&base_steps=7-3", 400, "`7-3` is not a range of steps."),
        ("base=base&candidate=base&candidate_steps=30-40", 400, "`base` has no steps 30-40."),
        ("base=base&candidate=base&limit=501", 400, "`limit` is larger than 500."),
        ("base=base&candidate=../../etc", 404, "There is no run `../../etc` in the logdir."),
    ],
)
def test_what_cannot_be_compared_is_said(client: FlaskClient, query: str, code: int, sentence: str) -> None:
    assert error(client, query, code) == sentence


def test_steps_that_are_there_are_named(client: FlaskClient) -> None:
    found = answer(client, "base=base&candidate=base&candidate_steps=30-40", 400)
    assert found["error"]["advice"] == "It has the steps 0-5."


def test_a_run_that_cannot_be_read_is_said(client: FlaskClient) -> None:
    assert error(client, "base=base&candidate=broken", 404) == "The JSON is broken before the first event."


def test_a_rank_that_cannot_be_read_is_left_out_and_said(client: FlaskClient) -> None:
    comparison = answer(client, "base=base&candidate=half")["comparison"]
    assert comparison["candidate"]["profiles"] == 1
    assert "1 trace(s) of the candidate could not be read, or not completely." in comparison["notes"]


def test_an_analysis_that_takes_long_is_not_waited_for(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "ANALYSIS_PATIENCE_S", 0.1)
    sleeping = served(Profiles([Logdir(str(logs))], script("time.sleep(60)")))
    assert error(sleeping, "base=base&candidate=candidate", 202) == "The trace is still being analysed."


def test_a_comparison_that_breaks_is_no_crash(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "COMPARISON_COMMAND", (sys.executable, "-c", "raise SystemExit('out of order')"))
    assert error(client, "base=base&candidate=slow", 404) == "The comparison failed with an internal error."


def test_a_comparison_that_cannot_be_started_is_no_crash(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "COMPARISON_COMMAND", ("no-such-program",))
    reason = "The comparison could not be started: No such file or directory."
    assert error(client, "base=base&candidate=slow", 404) == reason


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
@pytest.mark.parametrize(
    ("limit", "does", "message"),
    [
        (
            "wall_s=ScaledBound(0.1)",
            "time.sleep(60)",
            "The comparison took longer than 600 s and 10 s for each MB of text",
        ),
        ("memory_bytes=ScaledBound(1e7)", "bytes(10**9)", "The comparison needs more memory than 10 MB"),
    ],
)
def test_a_comparison_that_takes_more_than_it_may(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, limit: str, does: str, message: str
) -> None:
    """What the process says by itself, and what is read off how it ended."""
    module = (
        "import time; import tb_tidy_plugin.compare.compare as c; "
        "from tb_tidy_plugin.plugin import comparison_worker as it"
    )
    limits = f"from tb_tidy_plugin.trace.limits import ScaledBound, Limits; it.limits_in = lambda _: Limits({limit})"
    code = f"{module}; {limits}; c.compared = lambda *_: {does}; it.main()"
    command = (sys.executable, "-c", f"import sys; sys.path[:] = sys.argv[1:]; {code}")
    monkeypatch.setattr(comparisons, "COMPARISON_COMMAND", command)
    found = answer(client, "base=base&candidate=slow", 404)["error"]
    assert found["message"].startswith(message)
    assert "[limits]" in found["advice"]


def test_the_web_server_never_works_a_comparison_out() -> None:
    """Nothing of what compares is imported by the routes."""
    code = "import sys, tb_tidy_plugin.plugin.web; print('tb_tidy_plugin.compare.compare' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"False"
