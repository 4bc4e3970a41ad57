"""The routes of the timeline: windows, events, marks and crops of a real trace, asked over HTTP."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tb_tidy_plugin.plugin import timelines, web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tests.support.logdirs import trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE

OPERATORS = 700
PROFILE = "run=run&worker=w&span=7"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("timeline")
    trace(root / "run" / "w.7.pt.trace.json.gz", OPERATORS)
    (root / "broken").mkdir()
    (root / "broken" / "w.pt.trace.json").touch()
    return root


@pytest.fixture(scope="module")
def profiles(logs: Path) -> Profiles:
    profiles = Profiles([Logdir(str(logs))], WITH_MADE_UP_RULE)
    profiles.start()
    until(lambda: not profiles.scanning)
    return profiles


@pytest.fixture(scope="module")
def client(profiles: Profiles) -> FlaskClient:
    return web.create_app(profiles, (), MuteStore(())).test_client()


def asked(client: FlaskClient, path: str, **query: object) -> Any:  # noqa: ANN401 - any JSON
    rest = "".join(f"&{name}={value}" for name, value in query.items())
    answer = client.get(f"/api/{path}?{PROFILE}{rest}")
    assert answer.status_code == 200, answer.text
    return json.loads(answer.data)


def finding(client: FlaskClient) -> str:
    client.get(f"/api/events?{PROFILE}&finding=")  # waits for the analysis
    return str(asked(client, "report")["report"]["profiles"][0]["findings"][0]["id"])


def matched(client: FlaskClient) -> list[dict[str, Any]]:
    first, second = (asked(client, "events", finding=finding(client), limit=500, offset=at) for at in (0, 500))
    return [*first["rows"], *second["rows"]]


def test_the_whole_profile_as_one_window(client: FlaskClient) -> None:
    lanes = asked(client, "timeline/lanes")
    drawn = asked(client, "timeline", from_ns=0, to_ns=lanes["until_ns"], width=800)
    of_lane = [0] * len(lanes["lanes"])
    for lane, events in zip(drawn["bars"]["lane"], drawn["bars"]["events"], strict=True):
        of_lane[lane] += events
    assert of_lane == [lane["events"] for lane in lanes["lanes"]]
    assert sum(of_lane) == lanes["events"] + len(lanes["steps"]["names"])
    assert len({len(column) for column in drawn["bars"].values()}) == 1


def test_only_the_lanes_that_are_asked_for(client: FlaskClient) -> None:
    until_ns = asked(client, "timeline/lanes")["until_ns"]
    assert set(asked(client, "timeline", from_ns=0, to_ns=until_ns, lanes="1")["bars"]["lane"]) == {1}


def test_a_findings_events_are_marked_and_all_of_them(client: FlaskClient) -> None:
    until_ns = asked(client, "timeline/lanes")["until_ns"]
    rows = matched(client)
    drawn = asked(client, "timeline", from_ns=0, to_ns=until_ns, width=4, finding=finding(client))
    assert sum(drawn["bars"]["marked"]) == len(rows) == OPERATORS
    assert sum(asked(client, "timeline", from_ns=0, to_ns=until_ns)["bars"]["marked"]) == 0
    marks = asked(client, "timeline/marks", from_ns=0, to_ns=until_ns, width=50, finding=finding(client))
    assert sum(marks["events"]) == marks["total"] == OPERATORS
    assert marks["first"][0] == rows[0]["id"]


def test_events_are_found_by_name_one_after_the_other_and_around_the_ends(client: FlaskClient) -> None:
    first = asked(client, "timeline/found", q="ATEN::M")
    assert first["total"] >= 2
    assert first["index"] == 0
    second = asked(client, "timeline/found", q="aten::m", event=first["event"])
    assert second["index"] == 1
    assert asked(client, "timeline/found", q="aten::m", event=second["event"], direction="previous") == first
    last = asked(client, "timeline/found", q="aten::m", event=first["event"], direction="previous")
    assert last["index"] == first["total"] - 1
    event = asked(client, "timeline/event", event=second["event"])
    assert "aten::m" in event["name"]
    assert asked(client, "timeline/found", q="aten::m", from_ns=event["start_ns"]) == second
    assert asked(client, "timeline/found", q="aten::m", from_ns=event["start_ns"], direction="previous") == first
    assert asked(client, "timeline/found", q="no such name") == {"total": 0, "index": None, "event": None}


def test_a_row_of_the_evidence_leads_to_its_window(client: FlaskClient) -> None:
    row = matched(client)[17]
    event = asked(client, "timeline/event", event=row["id"])
    assert {name: event[name] for name in ("id", "name", "start_ns", "duration_ns", "step", "shapes")} == {
        name: row[name] for name in ("id", "name", "start_ns", "duration_ns", "step", "shapes")
    }
    assert asked(client, "timeline/lanes")["lanes"][event["lane"]]["name"] == row["lane"]
    start_ns = row["start_ns"]
    drawn = asked(client, "timeline", from_ns=start_ns, to_ns=start_ns + row["duration_ns"], width=2000)
    assert row["id"] in drawn["bars"]["id"]


def test_a_crop_is_a_trace_of_its_own(client: FlaskClient, tmp_path: Path) -> None:
    row = matched(client)[17]
    window = {"from_ns": row["start_ns"], "to_ns": row["start_ns"] + row["duration_ns"]}
    answer = client.get(f"/api/timeline/trace?{PROFILE}&from_ns={window['from_ns']}&to_ns={window['to_ns']}")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    crop = json.loads(answer.data)
    inside = asked(client, "timeline", **window, width=1)
    complete = [event for event in crop["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == sum(inside["bars"]["events"])
    assert row["name"] in {event["name"] for event in complete}


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("timeline", "from_ns=10&to_ns=10", 400),
        ("timeline", "from_ns=0", 400),
        ("timeline", "from_ns=-1&to_ns=5", 400),
        ("timeline", "from_ns=0&to_ns=5&width=0", 400),
        ("timeline", "from_ns=0&to_ns=5&width=5000", 400),
        ("timeline", "from_ns=0&to_ns=5&lanes=1;2", 400),
        ("timeline", "from_ns=0&to_ns=5&lanes=" + ",".join(["1"] * 501), 400),
        ("timeline", "from_ns=0&to_ns=5&finding=other", 404),
        ("timeline/event", "event=999999999", 404),
        ("timeline/event", "event=x", 400),
    ],
)
def test_questions_that_make_no_sense(client: FlaskClient, path: str, query: str, status: int) -> None:
    answer = client.get(f"/api/{path}?{PROFILE}&{query}")
    assert answer.status_code == status
    assert json.loads(answer.data)["error"]["advice"]


def test_a_trace_that_cannot_be_read(client: FlaskClient) -> None:
    answer = client.get("/api/timeline/lanes?run=broken&worker=w&span=")
    assert answer.status_code == 404
    assert json.loads(answer.data)["error"]["message"]


def test_a_process_that_cannot_be_started_is_no_crash(profiles: Profiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timelines, "TIMELINE_COMMAND", ("no-such-program",))
    new = web.create_app(profiles, (), MuteStore(())).test_client()
    error = json.loads(new.get(f"/api/timeline/lanes?{PROFILE}").data)["error"]
    assert error["message"] == "The timeline could not be drawn: No such file or directory."


TOO_LONG = "The timeline took longer than 600 s and 10 s for each MB of text"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit less")
@pytest.mark.parametrize(
    ("limit", "does", "message"),
    [
        ("wall_s=ScaledBound(0.1)", "time.sleep(60)", TOO_LONG),
        ("memory_bytes=ScaledBound(1e7)", "bytes(10**9)", "The timeline needs more memory than 10 MB"),
    ],
)
def test_a_process_that_takes_more_than_it_may(
    profiles: Profiles, monkeypatch: pytest.MonkeyPatch, limit: str, does: str, message: str
) -> None:
    """What the process says by itself, and what is read off how it ended."""
    module = "import time; from tb_tidy_plugin.plugin import timeline_worker as it"
    limits = f"from tb_tidy_plugin.trace.limits import Limits, ScaledBound; it.limits_in = lambda _: Limits({limit})"
    code = f"{module}; {limits}; it.read_timeline = lambda *_: {does}; it.main()"
    monkeypatch.setattr(
        timelines, "TIMELINE_COMMAND", (sys.executable, "-c", f"import sys; sys.path[:] = sys.argv[1:]; {code}")
    )
    new = web.create_app(profiles, (), MuteStore(())).test_client()
    error = json.loads(new.get(f"/api/timeline/lanes?{PROFILE}").data)["error"]
    assert error["message"].startswith(message)
    assert "[limits]" in error["advice"]
