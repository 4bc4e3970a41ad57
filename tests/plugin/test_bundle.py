"""The page's own files: what is kept by browsers, and that nothing beside them is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tb_tidy_plugin.plugin import web
from tb_tidy_plugin.plugin.logdirs import Logdir
from tb_tidy_plugin.plugin.models import ErrorAnswer
from tb_tidy_plugin.plugin.profiles import Profiles
from tb_tidy_plugin.system.decoders import decode
from tests.support.serving import served


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    return served(Profiles([Logdir(str(tmp_path))]))


def test_the_entry_is_asked_for_each_time_and_assets_once(client: FlaskClient, static: Path) -> None:
    entry = client.get("/index.js")
    assert entry.headers["Cache-Control"] == "no-cache"
    assert entry.mimetype == "text/javascript"
    assert client.get("/index.js", headers={"If-None-Match": entry.headers["ETag"]}).status_code == 304
    asset = client.get("/assets/chunk-a1b2.js")
    assert {"max-age=31536000", "immutable"} <= set(asset.headers["Cache-Control"].split(", "))


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.js",
        "/assets/../../outside.js",
        "/%2e%2e/outside.js",
        "/..%2foutside.js",
        "/..%5coutside.js",
        "//outside.js",
        "/{static}/index.js",
        "//{static}/index.js",
        "/assets/..%00/index.js",
        "/index.js%00.js",
        "/.stamp",
        "/index.html",
        "/web.py",
        "/../web.py",
        "/assets",
        "/" + "a" * 5000 + ".js",
    ],
)
def test_nothing_beside_the_bundle_is_served(client: FlaskClient, static: Path, path: str) -> None:
    response: TestResponse = client.get(path.format(static=static))
    assert response.status_code == 404
    assert b"secret" not in response.data
    assert decode(response.data, ErrorAnswer).error.code == 404


def test_a_package_without_a_built_frontend_says_so(
    client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "STATIC", tmp_path / "nothing")
    assert client.get("/index.js").status_code == 404
