"""The seam between TensorBoard's WSGI app and ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest
from werkzeug.test import Client

from tb_tidy_plugin.plugin.mount import CONTENT_TYPE_KEY, Mount

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX = "/data/plugin/torchtidy"


def shows_where_it_is(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['SCRIPT_NAME']} {environ['PATH_INFO']}".encode()]


@pytest.mark.parametrize(
    ("script", "path", "expected"),
    [
        ("", f"{PREFIX}/api/runs", f"{PREFIX} /api/runs"),
        ("/prefix", f"{PREFIX}/api/runs", f"/prefix{PREFIX} /api/runs"),
        ("/experiment/1", f"{PREFIX}/x", f"/experiment/1{PREFIX} /x"),
        ("", PREFIX, f"{PREFIX} /"),
        ("", f"{PREFIX}-other/x", f" {PREFIX}-other/x"),
    ],
)
def test_the_prefix_moves_from_the_path_to_the_mount_point(script: str, path: str, expected: str) -> None:
    client = Client(Mount(lambda: shows_where_it_is, PREFIX))
    assert client.get(path, environ_overrides={"SCRIPT_NAME": script}).text == expected


def test_the_app_is_made_with_the_first_request_and_once() -> None:
    made = []

    def make_app() -> object:
        made.append(1)
        return shows_where_it_is

    client = Client(Mount(make_app, PREFIX))  # type: ignore[arg-type]
    assert made == []
    client.get(PREFIX)
    client.get(PREFIX)
    assert made == [1]


def test_an_answer_without_content_type_gets_the_one_the_app_noted() -> None:
    def not_modified(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ[CONTENT_TYPE_KEY] = "text/javascript"
        start_response("304 NOT MODIFIED", [])
        return []

    answer = Client(Mount(lambda: not_modified, PREFIX)).get(PREFIX)
    assert answer.headers["Content-Type"] == "text/javascript"
