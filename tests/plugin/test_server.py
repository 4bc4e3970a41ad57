"""The page without TensorBoard: what its token lets in, its own page, and the address it listens on."""

from __future__ import annotations

import base64
import hashlib
import re
import socket
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tb_tidy_plugin.plugin.listener import Token, address_of, listening
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.mutes import NAME
from tb_tidy_plugin.plugin.server import ServerOptions, server_of
from tb_tidy_plugin.words.errors import TidyError
from tests.support.logdirs import trace
from tests.support.serving import ReadingClient
from tests.support.waiting import until

OURS = {"X-TorchTidy": "1"}
MUTE = {"mute": {"findings": [], "rules": ["one"]}, "unmute": {"findings": [], "rules": []}}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    trace(tmp_path / "logs" / "run" / "w.7.pt.trace.json")
    trace(tmp_path / "logs" / "run" / "x.7.pt.trace.json")
    return tmp_path / "logs"


def app_of(path: Path, token: Token) -> Flask:
    with (
        listening("127.0.0.1", 0) as listener,
        server_of(ServerOptions(Logdir(str(path)), cache="off"), token, listener) as server,
    ):
        assert isinstance(server.app, Flask)
        server.app.test_client_class = ReadingClient
        return server.app


@pytest.fixture
def token() -> Token:
    return Token()


@pytest.fixture
def stranger(logs: Path, token: Token) -> FlaskClient:
    return app_of(logs, token).test_client()


@pytest.fixture
def user(stranger: FlaskClient, token: Token) -> FlaskClient:
    """Has opened the address that the server printed."""
    assert stranger.get(f"/?token={token.text}").status_code == 200
    return stranger


def test_a_token_is_long_and_another_each_time(token: Token) -> None:
    assert len(token.text) == 32
    assert Token().text != token.text
    assert token.text not in repr(token)
    assert token.is_in(token.text)


@pytest.mark.parametrize("given", [None, "", "x", "é"])
def test_nothing_else_is_the_token(token: Token, given: str | None) -> None:
    assert not token.is_in(given)
    assert not token.is_in(token.text[:-1])


@pytest.mark.parametrize("path", ["/", "/?token=x", "/index.js", "/api/runs", "/api/nothing", "/nothing"])
def test_nothing_is_answered_without_the_token(stranger: FlaskClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "`tb-tidy serve` printed" in answer.text
    kinds = {"/": "text/html", "/?token=x": "text/plain"}
    assert answer.mimetype == kinds.get(path, "application/json")


def test_only_the_page_takes_the_token_from_an_address(stranger: FlaskClient, token: Token) -> None:
    assert stranger.get(f"/api/runs?token={token.text}").status_code == 403


def test_the_first_address_leads_to_one_without_the_token(stranger: FlaskClient, token: Token) -> None:
    answer = stranger.get(f"/?token={token.text}")
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert "location.replace(" in answer.text
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{token.cookie}={token.session};")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/index.js").status_code == 200


def test_no_answer_holds_the_token(stranger: FlaskClient, token: Token) -> None:
    """Other servers on the machine get the cookie, and the page's address is shown and sent."""
    for path in (f"/?token={token.text}", "/", "/api/runs"):
        answer = stranger.get(path)
        assert token.text not in answer.text + str(answer.headers)


def test_neither_secret_takes_the_place_of_the_other(stranger: FlaskClient, token: Token) -> None:
    assert stranger.get(f"/?token={token.session}").status_code == 403
    stranger.set_cookie(token.cookie, token.text)
    assert stranger.get("/").status_code == 403
    assert token.session not in repr(token)


def test_a_link_from_another_site_is_opened_again_once(stranger: FlaskClient) -> None:
    """A browser leaves out a strict cookie there, and sends it when the page itself opens the address."""
    assert "location.replace(" in stranger.get("/").text
    assert "location.replace(" not in stranger.get("/?open").text


def test_each_server_on_a_machine_has_a_cookie_of_its_own(token: Token, user: FlaskClient) -> None:
    assert Token().cookie != token.cookie
    assert user.get("/api/runs").status_code == 200
    user.set_cookie(token.cookie, Token().session)
    assert user.get("/api/runs").status_code == 403


def test_the_page_runs_its_own_script_and_no_other(user: FlaskClient) -> None:
    answer = user.get("/")
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    (script,) = re.findall('<script type="module">(.*)</script>', answer.text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = answer.headers["Content-Security-Policy"]
    assert f"script-src 'self' 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_rebound_page_gets_nothing_even_with_the_token(user: FlaskClient, token: Token) -> None:
    headers = {"Host": "evil.example", "Cookie": f"{token.cookie}={token.session}"}
    answer = user.get("/api/runs", headers=headers)
    assert answer.status_code == 403
    assert "--allowed-host NAME" in answer.text


def test_acting_takes_the_token_and_a_header_of_the_pages_own(user: FlaskClient) -> None:
    assert user.post("/api/mutes", json=MUTE).status_code == 403
    assert user.post("/api/mutes", json=MUTE, headers=OURS).status_code == 200


def test_benchmarks_are_off_unless_they_are_asked_for(user: FlaskClient) -> None:
    until(lambda: not user.get("/api/runs").get_json()["scanning"])
    user.get("/api/progress?run=run&worker=w&span=7").get_data()
    answer = user.get("/api/benchmarks?run=run&worker=w&span=7").get_json()
    assert "tb-tidy serve --benchmarks" in answer["refusal"]["advice"]


def test_one_trace_is_served_alone_and_its_mutes_are_kept_beside_it(logs: Path, token: Token) -> None:
    user = app_of(logs / "run" / "x.7.pt.trace.json", token).test_client()
    user.get(f"/?token={token.text}")
    until(lambda: not user.get("/api/runs").get_json()["scanning"])
    [run] = user.get("/api/runs").get_json()["runs"]
    assert (run["run"], [each["worker"] for each in run["profiles"]]) == ("run", ["x"])
    assert user.get("/api/mutes").get_json()["path"] == str(logs / "run" / NAME)
    (logs / "run" / "x.7.pt.trace.json").unlink()


def test_a_port_that_is_taken_is_an_error_of_the_users() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TidyError) as refusal:
            listening("127.0.0.1", port)
    assert f"cannot listen on `127.0.0.1`, port {port}" in refusal.value.error


def test_a_host_that_is_no_address_of_this_machine_is_an_error_of_the_users() -> None:
    with pytest.raises(TidyError, match="cannot listen on"):
        listening("203.0.113.7", 0)


def test_the_address_is_that_of_the_port_which_was_free(token: Token) -> None:
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert address_of(listener, "127.0.0.1", token) == f"http://127.0.0.1:{port}/?token={token.text}"
        assert address_of(listener, "0.0.0.0", token).startswith(f"http://{socket.gethostname()}:{port}/")
        assert address_of(listener, "::1", token).startswith(f"http://[::1]:{port}/")
