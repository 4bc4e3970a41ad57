"""Requests from pages and machines that have no business here: rebound names, other sites, tricks with paths."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.allowed_hosts import AllowedHosts, hosts_of
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tests.support.logdirs import trace
from tests.support.waiting import until
from tests.support.workers import WITH_MADE_UP_RULE

OURS = {"X-TorchTidy": "1"}
MUTE = {"mute": {"findings": [], "rules": ["one"]}, "unmute": {"findings": [], "rules": []}}
PROFILE = "run=run&worker=w&span=7"
SECRET = "hunter2"

LOCAL = AllowedHosts(frozenset({"gpu-box", "tb.example.org"}))
OPEN = AllowedHosts(LOCAL.names, is_local=False)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    trace(root / "logs" / "run" / "w.7.pt.trace.json.gz")
    (root / "outside.py").write_text(f"{SECRET} = 1\n")
    (root / "logs" / "run" / "train.py").symlink_to(root / "outside.py")
    (root / "secret.js").write_text(SECRET)
    return root / "logs"


@pytest.fixture(scope="module")
def profiles(logs: Path) -> Profiles:
    profiles = Profiles([Logdir(str(logs))], WITH_MADE_UP_RULE)
    profiles.start()
    until(lambda: not profiles.scanning)
    return profiles


def client(profiles: Profiles, logs: Path, hosts: AllowedHosts = LOCAL) -> FlaskClient:
    return web.create_app(profiles, [], MuteStore([Logdir(str(logs))]), hosts=hosts).test_client()


def told(response: TestResponse) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(response.data)


# Names by which a browser asked

KNOWN = ["localhost", "LOCALHOST.", "localhost:6006", "127.0.0.1:6006", "[::1]:6006", "192.168.0.7:16006",
         "a.localhost:1", "gpu-box:6006", "TB.example.org", "tb.example.org:"]  # fmt: skip
UNKNOWN = ["evil.example:6006", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost", "", ":6006", "a b",
           "gpu-box.evil.example", "evil@localhost", "[::1", "[evil]", "localhost:6006:7", "0x7f000001",
           "localhost:port"]  # fmt: skip


@pytest.mark.parametrize("host", KNOWN)
def test_known_names(host: str) -> None:
    assert LOCAL.knows(host)


@pytest.mark.parametrize("host", UNKNOWN)
def test_unknown_names(host: str) -> None:
    assert not LOCAL.knows(host)


def test_a_request_without_a_host_is_no_browsers() -> None:
    assert LOCAL.knows(None)


def test_names_come_from_the_flags_the_machine_and_a_notebooks_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Node7")
    proxied = {"TENSORBOARD_PROXY_URL": "https://hub.example.org/user/a/proxy/%PORT%/"}
    hosts = hosts_of("tb.lan", bind_all=False, named="one.lan, Two.lan.", environment=proxied)
    assert hosts.names == {"tb.lan", "one.lan", "two.lan", "node7", "hub.example.org"}
    assert not hosts.is_local


@pytest.mark.parametrize(
    ("host", "bind_all", "is_local"),
    [("", False, True), ("localhost", False, True), ("::1", False, True), ("", True, False), ("0.0.0.0", False, False)],
)
def test_whether_others_can_reach_it(host: str, bind_all: bool, is_local: bool) -> None:
    assert hosts_of(host, bind_all=bind_all, named="", environment={}).is_local is is_local


def test_an_address_that_is_none_names_nobody() -> None:
    hosts_of("", bind_all=False, named="", environment={"TENSORBOARD_PROXY_URL": "http://[broken"})


API = ["/api/runs", f"/api/report?{PROFILE}", f"/api/source?{PROFILE}&file=train.py", "/api/mutes", "/api/nothing"]


@pytest.mark.parametrize("path", API)
@pytest.mark.parametrize("host", ["evil.example:6006", "localhost.evil.example"])
def test_a_rebound_page_gets_no_data(profiles: Profiles, logs: Path, path: str, host: str) -> None:
    response = client(profiles, logs).get(path, headers={"Host": host})
    assert response.status_code == 403
    assert told(response)["error"]["advice"].startswith("Start TensorBoard with `--torchtidy_hosts=NAME`")
    assert SECRET not in response.text


@pytest.mark.parametrize("host", ["localhost:6006", "127.0.0.1:7007", "tb.example.org"])
def test_tunnels_addresses_and_named_proxies_are_answered(profiles: Profiles, logs: Path, host: str) -> None:
    assert client(profiles, logs).get("/api/runs", headers={"Host": host}).status_code == 200


def test_a_proxy_with_https_needs_no_name(profiles: Profiles, logs: Path) -> None:
    headers = {"Host": "hub.example.com", "Sec-Fetch-Site": "same-origin"}
    assert client(profiles, logs).get("/api/runs", headers=headers).status_code == 200
    assert client(profiles, logs).post("/api/mutes", json=MUTE, headers=headers | OURS).status_code == 200


def test_another_site_gains_nothing_by_https(profiles: Profiles, logs: Path) -> None:
    headers = {"Host": "hub.example.com", "Sec-Fetch-Site": "cross-site"}
    assert client(profiles, logs).get("/api/runs", headers=headers).status_code == 403


def test_where_everybody_reaches_it_reading_needs_no_name_and_acting_does(profiles: Profiles, logs: Path) -> None:
    page = client(profiles, logs, OPEN)
    assert page.get("/api/runs", headers={"Host": "alias.lan:6006"}).status_code == 200
    assert page.post("/api/mutes", json=MUTE, headers=OURS | {"Host": "alias.lan:6006"}).status_code == 403
    assert page.post("/api/mutes", json=MUTE, headers=OURS | {"Host": "gpu-box:6006"}).status_code == 200


def test_the_bundle_is_everybodys(profiles: Profiles, logs: Path) -> None:
    assert client(profiles, logs).get("/nothing.js", headers={"Host": "evil.example"}).status_code == 404


ACTING = ["/api/retry", "/api/mutes", "/api/benchmarks", "/api/benchmarks/cancel"]


@pytest.mark.parametrize("path", ACTING)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        OURS | {"Origin": "https://evil.example"},
        OURS | {"Origin": "null"},
        OURS | {"Origin": "http://localhost.evil.example:6006"},
        OURS | {"Origin": "http://localhost:6006", "Sec-Fetch-Site": "cross-site"},
        OURS | {"Host": "evil.example:6006", "Origin": "http://evil.example:6006"},
        OURS | {"Host": "evil.example:6006", "X-Forwarded-Host": "localhost"},
    ],
)
def test_nothing_is_done_for_another_site(profiles: Profiles, logs: Path, path: str, headers: dict[str, str]) -> None:
    response = client(profiles, logs).post(path, json=MUTE, headers=headers)
    assert response.status_code == 403


def test_a_forward_by_a_proxy_that_renames_is_told_by_its_origin(profiles: Profiles, logs: Path) -> None:
    """Browsers send no `Sec-Fetch-Site` by plain HTTP; nginx sends `localhost:6006` for a Host."""
    headers = OURS | {"Host": "localhost:6006", "Origin": "http://tb.example.org"}
    assert client(profiles, logs).post("/api/mutes", json=MUTE, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ACTING)
def test_nothing_is_done_by_reading(profiles: Profiles, logs: Path, path: str) -> None:
    before = sorted(logs.rglob("*"))
    for query in ("", "?mute=one&finding=x&job=1", f"?{PROFILE}&finding=x"):
        assert client(profiles, logs).get(path + query, headers=OURS).status_code in {200, 400, 404, 405}
    assert sorted(logs.rglob("*")) == before


# Paths

TRICKS = [
    "../outside.py", "..%2Foutside.py", "..%252Foutside.py", "%2e%2e/outside.py", "....//outside.py", "..\\outside.py",
    "/etc/passwd", "//etc/passwd", "file:///etc/passwd", "C:\\Windows\\win.ini", "\\\\host\\share\\x",
    "train.py%00.png", "train.py/.", "./train.py", "run/../../outside.py", "\u2025/outside.py", "\ud800",
    "%c0%ae%c0%ae/outside.py",
    "a" * 60_000, "/proc/self/environ", "/dev/zero", "~/.ssh/id_rsa", "${HOME}", "con", "",
]  # fmt: skip
ROUTES = [
    "report?run={}", "report?run=run&worker={}&span=7", "report?run=run&worker=w&span={}", "ranks?run={}",
    "progress?run=run&worker=w&span={}", f"source?{PROFILE}&file={{}}", f"lines?{PROFILE}&file={{}}",
    f"stack?{PROFILE}&finding={{}}", f"events?{PROFILE}&finding={{}}", f"operators?{PROFILE}&filter={{}}",
    "modules?run={}&worker=w&span=7", "memory?run={}&worker=w&span=7", "cpu?run={}&worker=w&span=7",
    "timeline/lanes?run={}&worker=w&span=7", f"timeline?{PROFILE}&from_ns=0&to_ns=9&lanes={{}}",

    f"timeline/trace?{PROFILE}&from_ns=0&to_ns={{}}",
    f"export?{PROFILE}&muted={{}}", "compare?base={0}&candidate={0}", "benchmarks?run={}", "benchmarks/progress?job={}",
]  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_a_name_never_becomes_a_path(profiles: Profiles, logs: Path, route: str) -> None:
    page = client(profiles, logs)
    for trick in TRICKS:
        for written in (trick, quote(trick, safe="", errors="surrogatepass")):
            response = page.get("/api/" + route.format(written.encode("utf-8", "replace").decode()))
            assert response.status_code in {200, 202, 400, 404}, (trick, response.text)
            assert response.mimetype in {"application/json", "application/x-ndjson"}
            for never in (SECRET, "root:x:", "Traceback", str(Path(web.__file__).parent)):
                assert never not in response.text


def test_a_source_beside_the_trace_that_is_a_link_out_of_it_is_not_shown(profiles: Profiles, logs: Path) -> None:
    response = client(profiles, logs).get(f"/api/source?{PROFILE}&file=train.py")
    assert (told(response)["available"], told(response)["lines"], told(response)["path"]) == (False, [], None)


# Answers

DATA = ["/api/runs", "/api/rules", "/api/mutes", "/api/nothing", "/api/report", f"/api/source?{PROFILE}&file=train.py"]


@pytest.mark.parametrize("path", DATA)
def test_data_is_no_page_belongs_into_no_frame_and_is_nobody_elses(profiles: Profiles, logs: Path, path: str) -> None:
    headers = client(profiles, logs).get(path).headers
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] in {"private, no-cache", "no-store"}
    assert not [name for name in headers.keys() if name.startswith("Access-Control-")]  # noqa: SIM118 - Werkzeug's


# Bodies


@pytest.mark.parametrize("path", ACTING)
@pytest.mark.parametrize(
    "body",
    [b"[" * 60_000, b'{"mute":' * 8_000, b'"\xff"', b"\x00" * 100, b'{"job": 1e400}', b'{"job": 9223372036854775808}'],
)  # fmt: skip
def test_a_body_that_is_damaged_is_refused(profiles: Profiles, logs: Path, path: str, body: bytes) -> None:
    response = client(profiles, logs).post(path, data=body, content_type="application/json", headers=OURS)
    assert response.status_code in {400, 403, 404}
    assert told(response)["error"]["message"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_mutes_that_are_a_pipe_are_not_waited_for(profiles: Profiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".torchtidy.json")
    response = client(profiles, tmp_path).get("/api/mutes")
    assert (response.status_code, "is not a regular file" in response.text) == (409, True)


def test_mutes_of_somebody_else_are_names_only(profiles: Profiles, tmp_path: Path) -> None:
    (tmp_path / ".torchtidy.json").write_text(
        '{"findings": ["<img src=x>", "a1", "\\u202ea"], "rules": ["' + "x" * 200 + '"]}'
    )
    found = told(client(profiles, tmp_path).get("/api/mutes"))["mutes"]
    assert found == {"findings": ["a1"], "rules": []}


def test_mutes_nested_without_end_are_said(profiles: Profiles, tmp_path: Path) -> None:
    (tmp_path / ".torchtidy.json").write_text('{"findings": ' + "[" * 100_000)
    assert client(profiles, tmp_path).get("/api/mutes").status_code == 409
