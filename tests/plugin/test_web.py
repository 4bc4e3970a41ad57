"""The web API: what it answers, in which form, and what it never gives away."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TypeVar

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.plugin import routes
from tb_tidy_plugin.plugin.analysis import AnalysisSettings
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import (
    ErrorAnswer,
    ErrorInfo,
    EventsAnswer,
    ProfileState,
    ReportAnswer,
    RulesAnswer,
    RunsAnswer,
    SourceAnswer,
    StackAnswer,
    StackFrame,
)
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.rules import catalogue
from tb_tidy_plugin.system.decoders import decode
from tests.support.logdirs import trace
from tests.support.serving import served
from tests.support.user_rule import write_rule
from tests.support.workers import WITH_MADE_UP_RULE, held_by

Answer = TypeVar("Answer")

OURS = {"X-TorchTidy": "1"}
OPERATORS = 700
PROFILE = "run=run&worker=w&span=7"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("web")
    trace(root / "logs" / "run" / "w.7.pt.trace.json.gz", OPERATORS)
    (root / "logs" / "broken").mkdir()
    (root / "logs" / "broken" / "w.pt.trace.json").touch()
    (root / "logs" / "run" / "train.py").write_text("import torch\n")
    (root / "logs" / "run" / "other.py").write_text("secret = 1\n")
    (root / "outside.py").write_text("secret = 1\n")
    return root / "logs"


@pytest.fixture(scope="module")
def client(logs: Path) -> FlaskClient:
    return served(Profiles([Logdir(str(logs))], WITH_MADE_UP_RULE))


def answer(client: FlaskClient, query: str, kind: type[Answer]) -> Answer:
    response = client.get(f"/api/{query}")
    assert response.status_code == 200, response.text
    return decode(response.data, kind)


def error(client: FlaskClient, query: str, code: int) -> ErrorInfo:
    response = client.get(f"/api/{query}")
    assert response.status_code == code, response.text
    found = decode(response.data, ErrorAnswer).error
    assert found.code == code
    assert found.message
    assert found.advice
    return found


def finding_of(client: FlaskClient) -> str:
    client.get(f"/api/progress?{PROFILE}").get_data()
    [profile] = answer(client, "report?run=run", ReportAnswer).report.profiles
    return profile.findings[0].id


# Each route


def test_runs(client: FlaskClient, logs: Path) -> None:
    runs = answer(client, "runs", RunsAnswer)
    assert runs.logdirs == [str(logs)]
    assert not runs.scanning
    assert [(run.run, [(each.worker, each.span, each.span_index) for each in run.profiles]) for run in runs.runs] == [
        ("broken", [("w", "", None)]),
        ("run", [("w", "7", 1)]),
    ]


def test_report_of_a_run_of_a_worker_and_of_a_span(client: FlaskClient) -> None:
    finding_of(client)
    for query in ("run=run", "run=run&worker=w", PROFILE, "run=run&span=7"):
        found = answer(client, f"report?{query}", ReportAnswer)
        assert [state.state for state in found.states] == ["done"]
        assert [profile.span for profile in found.report.profiles] == ["7"]


def test_report_of_a_broken_trace_is_its_problem(client: FlaskClient) -> None:
    client.get("/api/progress?run=broken&worker=w&span=").get_data()
    found = answer(client, "report?run=broken&worker=w&span=", ReportAnswer)
    [state] = found.states
    assert state.problem is not None
    assert state.problem.error == "The file is empty."
    assert found.report.profiles == []


def test_a_failed_analysis_is_made_again_by_a_request_of_the_tabs_own(client: FlaskClient) -> None:
    broken = {"run": "broken", "worker": "w", "span": ""}
    client.get("/api/progress", query_string=broken).get_data()
    [before] = answer(client, "report?run=broken", ReportAnswer).states
    assert client.post("/api/retry", json=broken).status_code == 403
    assert answer(client, "report?run=broken", ReportAnswer).states == [before]
    response = client.post("/api/retry", json=broken, headers=OURS)
    again = decode(response.data, ProfileState)
    assert (again.version > before.version, again.problem, again.state) == (True, None, "queued")
    client.get("/api/progress", query_string=broken).get_data()
    [after] = answer(client, "report?run=broken", ReportAnswer).states
    assert (after.version, after.state, after.problem) == (again.version, "error", before.problem)
    assert client.post("/api/retry", json=broken | {"span": "7"}, headers=OURS).status_code == 404


def test_progress_is_one_state_per_line_and_ends_with_the_last(client: FlaskClient) -> None:
    response = client.get(f"/api/progress?{PROFILE}")
    lines = [decode(line, ProfileState) for line in response.data.splitlines()]
    assert response.mimetype == "application/x-ndjson"
    assert response.headers["Cache-Control"] == "no-store"
    assert lines[-1].state == "done"


def test_progress_comes_as_it_is_made(logs: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    client = served(Profiles([Logdir(str(logs))], held_by(gate)))
    lines = client.open(f"/api/progress?{PROFILE}", buffered=False).iter_encoded()
    assert json.loads(next(lines))["state"] == "queued"
    gate.touch()
    assert json.loads([*lines][-1])["state"] == "done"


def test_rules_with_their_pages(client: FlaskClient) -> None:
    rules = answer(client, "rules", RulesAnswer).rules
    assert [rule.rule for rule in rules] == [rule.name() for rule in catalogue()]
    for rule in rules:
        assert rule.title
        assert rule.needs == sorted(rule.needs)
        assert [section.heading for section in rule.sections][:2] == ["What it finds", "Why it is slow"]
        (share,) = [threshold for threshold in rule.thresholds if threshold.name == "min-share"]
        assert share.default > 0
        assert share.reason


def test_a_configuration_that_is_mended_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "tb-tidy.toml"
    file.write_text('rules = ["slow_multiplication.py"]')
    client = served(Profiles([Logdir(str(tmp_path))], asked=AnalysisSettings(file)))
    assert "There is no file" in error(client, "rules", 404).message
    write_rule(tmp_path)
    assert answer(client, "rules", RulesAnswer).rules[-1].rule == "slow-multiplication"


def test_source_beside_the_trace(client: FlaskClient, logs: Path) -> None:
    assert answer(client, f"source?{PROFILE}&file=train.py", SourceAnswer) == SourceAnswer(
        file="train.py",
        available=True,
        reason=None,
        changed=False,
        lines=["import torch"],
        path=str((logs / "run" / "train.py").resolve()),
    )


def test_where_a_source_lies_is_told_of_no_file_that_may_not_be_shown(client: FlaskClient) -> None:
    assert answer(client, f"source?{PROFILE}&file=..%2F..%2Foutside.py", SourceAnswer).path is None


def test_a_path_that_is_no_text_is_not_told_as_another_one(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    trace(folder / "run" / "w.7.pt.trace.json")
    (folder / "run" / "train.py").write_text("import torch\n")
    found = answer(
        served(Profiles([Logdir(str(folder))], WITH_MADE_UP_RULE)), f"source?{PROFILE}&file=train.py", SourceAnswer
    )
    assert (found.lines, found.path) == (["import torch"], None)


def test_what_called_a_place_of_a_finding(client: FlaskClient) -> None:
    finding = finding_of(client)
    assert answer(client, f"stack?{PROFILE}&finding={finding}&place=0", StackAnswer) == StackAnswer(
        frames=[
            StackFrame(file="train.py", line=20, function="step", precision="definition", ties=[]),
            StackFrame(file="train.py", line=10, function="main", precision="definition", ties=[]),
        ],
        more=0,
    )
    assert "no finding" in error(client, f"stack?{PROFILE}&finding={finding}&place=1", 404).message
    assert "no finding" in error(client, f"stack?{PROFILE}&finding=000000000000", 404).message


def test_ranks_are_known_or_all(client: FlaskClient) -> None:
    assert "ranks=some" in error(client, "report?run=run&ranks=some", 400).message
    assert answer(client, "report?run=run&ranks=all", ReportAnswer).report.outcomes == []


def test_source_that_may_not_be_shown_says_why(client: FlaskClient) -> None:
    found = answer(client, f"source?{PROFILE}&file=..%2F..%2Foutside.py", SourceAnswer)  # the trace names it
    assert not found.available
    assert found.lines == []
    assert found.reason is not None
    assert "--torchtidy_source_roots" in found.reason


def test_source_from_a_root_of_the_flag(logs: Path) -> None:
    client = served(Profiles([Logdir(str(logs))], WITH_MADE_UP_RULE), [logs.parent])
    assert answer(client, f"source?{PROFILE}&file=..%2F..%2Foutside.py", SourceAnswer).lines == ["secret = 1"]


@pytest.mark.parametrize(
    "name",
    [
        "other.py",
        "../../outside.py%00.py",
        "..%2Frun%2Ftrain.py",
        "/etc/passwd",
        "train.py/",
        "TRAIN.PY",
        "%2e%2e/x.py",
    ],
)
def test_source_that_the_trace_does_not_name(client: FlaskClient, name: str) -> None:
    found = answer(client, f"source?{PROFILE}&file={name}", SourceAnswer)
    assert found.reason == "The page shows only files that the recording names, and it does not name this one."


def test_events_in_pages(client: FlaskClient) -> None:
    query = f"events?{PROFILE}&finding={finding_of(client)}"
    first = answer(client, query, EventsAnswer)
    assert (first.total, first.offset, len(first.rows)) == (OPERATORS, 0, 100)
    assert first.rows[0].place == "../../outside.py:1"
    last = answer(client, f"{query}&offset=600&limit=500", EventsAnswer)
    assert (last.total, last.offset, len(last.rows)) == (OPERATORS, 600, 100)


@pytest.mark.parametrize(
    ("sort", "starts_us"),
    [
        ("start", [20, 21]),
        ("-start", [719, 718]),
        ("duration", [719, 718]),
        ("-duration", [20, 21]),
        ("-name", [20, 21]),  # all have the same name, step and lane
        ("step", [20, 21]),
        ("-lane", [20, 21]),
    ],
)
def test_events_sorted(client: FlaskClient, sort: str, starts_us: list[int]) -> None:
    query = f"events?{PROFILE}&finding={finding_of(client)}&limit=2&sort={sort}"
    assert [row.start_ns // 1000 for row in answer(client, query, EventsAnswer).rows] == starts_us


def test_an_analysis_that_is_not_there_is_waited_for(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    client = served(Profiles([Logdir(str(logs))], held_by(gate)))
    monkeypatch.setattr(routes, "ANALYSIS_PATIENCE_S", 0.05)
    assert "still being analysed" in error(client, f"source?{PROFILE}&file=train.py", 202).message
    gate.touch()
    monkeypatch.setattr(routes, "ANALYSIS_PATIENCE_S", 60.0)
    assert answer(client, f"source?{PROFILE}&file=train.py", SourceAnswer).available


# Questions that make no sense


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("report", 400, "no `run`"),
        ("progress?run=run", 400, "no `worker`"),
        ("source?run=run&worker=w&span=7", 400, "no `file`"),
        (f"events?{PROFILE}", 400, "no `finding`"),
        (f"events?{PROFILE}&finding=x&offset=-1", 400, "offset"),
        (f"events?{PROFILE}&finding=x&limit=501", 400, "larger than 500"),
        (f"events?{PROFILE}&finding=x&limit=ten", 400, "limit"),
        (f"events?{PROFILE}&finding=x&offset=٣", 400, "offset"),
        (f"events?{PROFILE}&finding=x&offset={'9' * 40}", 400, "offset"),
        (f"events?{PROFILE}&finding=x&sort=color", 400, "Known: start"),
        (f"events?{PROFILE}&finding=x&sort=--start", 400, "sort"),
        (f"events?{PROFILE}&finding=nothing", 404, "no finding `nothing`"),
        ("report?run=nothing", 404, "no run `nothing`"),
        ("report?run=run&worker=nobody", 404, "worker `nobody`"),
        ("report?run=../logs/run", 404, "no run"),
        ("progress?run=run&worker=w&span=8", 404, "span `8`"),
        ("events?run=broken&worker=w&span=&finding=x", 404, "The file is empty"),
        ("source?run=run&worker=w&span=&file=train.py", 404, "no run `run`"),
        ("nothing", 404, ""),
        ("", 404, ""),
    ],
)
def test_is_answered_with_what_is_wrong(client: FlaskClient, query: str, code: int, words: str) -> None:
    found = error(client, query, code)
    assert words in found.message + found.advice


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/runs", "/api/nothing", "/index.js", "/"])
def test_other_methods_are_refused(client: FlaskClient, method: str, path: str) -> None:
    response = client.open(path, method=method, json={})
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"
    assert decode(response.data, ErrorAnswer).error.code == 405


def test_a_fault_of_ours_gives_nothing_away(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fault(*_: object, **__: object) -> object:
        raise RuntimeError("/home/user/secret")

    monkeypatch.setattr(Profiles, "runs", fault)
    found = error(client, "runs", 500)
    assert "secret" not in found.message + found.advice
    assert "/home/user/secret" in caplog.text


# The form of every answer

ANSWERS = [
    "/api/runs", "/api/rules", "/api/report?run=run", f"/api/source?{PROFILE}&file=train.py", "/api/nothing",
    "/api/report", f"/api/progress?{PROFILE}", "/index.js", "/assets/chunk-a1b2.js", "/nothing.js", "/", "/index.html",
    "/api/runs/", "//api/runs", "/api//runs", "/assets", "/assets/", "/api",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("path", ANSWERS)
def test_no_answer_is_html_or_may_be_taken_for_it(client: FlaskClient, static: Path, path: str, method: str) -> None:
    response = client.open(path, method=method)
    assert response.status_code in {200, 400, 404, 405}
    assert response.mimetype in {"application/json", "application/x-ndjson", "text/javascript"}
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"]


def test_what_has_not_changed_is_not_sent_again(client: FlaskClient) -> None:
    finding_of(client)
    for path in ("/api/runs", "/api/rules", "/api/report?run=run"):
        first = client.get(path)
        assert first.headers["ETag"].startswith('W/"')
        assert first.headers["Cache-Control"] == "private, no-cache"
        again = client.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.data) == (304, b"")
        assert client.get(path, headers={"If-None-Match": 'W/"another"'}).status_code == 200


def test_errors_are_not_kept_by_any_cache(client: FlaskClient) -> None:
    assert client.get("/api/nothing").headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", [f"/api/events?{PROFILE}&finding=", "/index.js"])
def test_large_answers_are_compressed_where_the_browser_can(client: FlaskClient, static: Path, path: str) -> None:
    path += finding_of(client) if path.endswith("finding=") else ""
    plain = client.get(path)
    packed = client.get(path, headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data)
    assert int(packed.headers["Content-Length"]) == len(packed.data)
    assert packed.headers["ETag"] == plain.headers["ETag"]
    for response in (plain, packed):
        assert response.headers["Vary"] == "Accept-Encoding"
    refused = client.get(path, headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers


def test_small_answers_are_not_compressed(client: FlaskClient) -> None:
    assert "Content-Encoding" not in client.get("/api/runs", headers={"Accept-Encoding": "gzip"}).headers
