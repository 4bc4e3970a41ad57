"""Mutes beside the runs: written only on request, never half, never by another site."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tb_tidy_plugin.plugin import mutes, web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ErrorAnswer, Mutes, MutesAnswer
from tb_tidy_plugin.plugin.mutes import NAME, MuteStore
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.system.decoders import decode

OURS = {"X-TorchTidy": "1"}
NOTHING: dict[str, list[str]] = {"findings": [], "rules": []}


def client(*logdirs: str | Path) -> FlaskClient:
    found = [Logdir(str(logdir)) for logdir in logdirs]
    return web.create_app(Profiles(found), (), MuteStore(found)).test_client()


def change(mute: dict[str, list[str]] | None = None, unmute: dict[str, list[str]] | None = None) -> dict[str, Any]:
    return {"mute": NOTHING | (mute or {}), "unmute": NOTHING | (unmute or {})}


def answered(response: TestResponse) -> MutesAnswer:
    assert response.status_code == 200, response.data
    return decode(response.data, MutesAnswer)


def error(response: TestResponse) -> str:
    return decode(response.data, ErrorAnswer).error.message


def test_nothing_is_written_until_somebody_asks(tmp_path: Path) -> None:
    answer = answered(client(tmp_path).get("/api/mutes"))
    assert (answer.kept, answer.can_keep, answer.path) == (False, True, str(tmp_path / NAME))
    assert answer.mutes == Mutes(findings=[], rules=[])
    assert not list(tmp_path.iterdir())


def test_what_is_muted_is_kept_for_everybody(tmp_path: Path) -> None:
    posted = client(tmp_path).post(
        "/api/mutes", json=change({"findings": ["a1", "b2"], "rules": ["one"]}), headers=OURS
    )
    assert answered(posted).kept
    again = answered(client(tmp_path).get("/api/mutes"))
    assert again.mutes == Mutes(findings=["a1", "b2"], rules=["one"])
    assert json.loads((tmp_path / NAME).read_text()) == {"findings": ["a1", "b2"], "rules": ["one"]}
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o644


def test_changes_of_two_people_add_up(tmp_path: Path) -> None:
    first, second = client(tmp_path), client(tmp_path)
    first.post("/api/mutes", json=change({"findings": ["a1"]}), headers=OURS)
    second.post("/api/mutes", json=change({"findings": ["b2"]}), headers=OURS)
    answer = answered(first.post("/api/mutes", json=change(unmute={"findings": ["a1", "unknown"]}), headers=OURS))
    assert answer.mutes.findings == ["b2"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 403),
        (OURS | {"Sec-Fetch-Site": "cross-site"}, 403),
        (OURS | {"Sec-Fetch-Site": "same-site"}, 403),
        (OURS | {"Sec-Fetch-Site": "same-origin"}, 200),
        (OURS, 200),
    ],
)
def test_only_the_tab_itself_may_change_them(tmp_path: Path, headers: dict[str, str], code: int) -> None:
    assert client(tmp_path).post("/api/mutes", json=change({"rules": ["one"]}), headers=headers).status_code == code
    assert (tmp_path / NAME).exists() is (code == 200)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"mute": {"findings": [1], "rules": []}, "unmute": {"findings": [], "rules": []}}',
        b'{"mute": {"findings": [], "rules": []}, "unmute": {"findings": [], "rules": []}, "path": "/etc"}',
        b" " * 70_000,
    ],
)
def test_other_bodies_are_refused(tmp_path: Path, body: bytes) -> None:
    response = client(tmp_path).post("/api/mutes", data=body, content_type="application/json", headers=OURS)
    assert response.status_code == 400
    assert not (tmp_path / NAME).exists()


def test_forms_are_refused(tmp_path: Path) -> None:
    text = json.dumps(change({"rules": ["one"]}))
    response = client(tmp_path).post("/api/mutes", data=text, content_type="text/plain", headers=OURS)
    assert response.status_code == 400


@pytest.mark.parametrize("name", ["", "../x", "<b>", "a" * 101, "A", "a b", "a\n"])
def test_names_that_cannot_be_are_refused(tmp_path: Path, name: str) -> None:
    response = client(tmp_path).post("/api/mutes", json=change({"findings": [name]}), headers=OURS)
    assert response.status_code == 409
    assert not (tmp_path / NAME).exists()


def test_there_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutes, "MOST_MUTES", 2)
    page = client(tmp_path)
    assert page.post("/api/mutes", json=change({"rules": ["one", "two"]}), headers=OURS).status_code == 200
    assert page.post("/api/mutes", json=change({"rules": ["three"]}), headers=OURS).status_code == 409
    assert answered(page.get("/api/mutes")).mutes.rules == ["one", "two"]


@pytest.mark.parametrize("text", ["", "{", '{"findings": 3, "rules": []}', '{"findings": []}'])
def test_a_broken_file_is_said_and_never_overwritten(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    for response in (
        client(tmp_path).get("/api/mutes"),
        client(tmp_path).post("/api/mutes", json=change({"rules": ["one"]}), headers=OURS),
    ):
        assert response.status_code == 409
        assert "is not a list of mutes" in error(response)
    assert (tmp_path / NAME).read_text() == text


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    page = client(tmp_path / "nowhere")
    assert not answered(page.get("/api/mutes")).can_keep
    response = page.post("/api/mutes", json=change({"rules": ["one"]}), headers=OURS)
    assert (response.status_code, "cannot be written" in error(response)) == (409, True)


def test_runs_that_can_only_be_read_have_no_place_for_them() -> None:
    page = client("https://host/runs")
    assert answered(page.get("/api/mutes")) == MutesAnswer(
        kept=False, can_keep=False, path=None, mutes=Mutes(findings=[], rules=[])
    )
    assert page.post("/api/mutes", json=change(), headers=OURS).status_code == 409


def test_the_first_local_folder_holds_them(tmp_path: Path) -> None:
    assert answered(client("s3://bucket", tmp_path).get("/api/mutes")).path == str(tmp_path / NAME)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_nothing_else_is_allowed(tmp_path: Path, method: str) -> None:
    response = client(tmp_path).open("/api/mutes", method=method, headers=OURS)
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD, POST"
    assert client(tmp_path).post("/api/runs", headers=OURS).headers["Allow"] == "GET, HEAD"
