"""What the tests of the plugin share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_tidy_plugin.plugin import profiles, web
from tests.support.logdirs import trace
from tests.support.profiles import LIMIT_S


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of our own, whatever is built."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.js").write_text("export function render() {}\n" * 100)
    (folder / "assets" / "chunk-a1b2.js").write_text("1")
    (folder / "index.html").write_text("<html>")
    (folder / ".stamp").write_text("stamp")
    (tmp_path / "outside.js").write_text("secret")
    monkeypatch.setattr(web, "STATIC", folder)
    return folder


@pytest.fixture
def always_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries do not keep what they found, and wait long where a machine is busy."""
    monkeypatch.setattr(profiles, "FRESH_S", 0.0)
    monkeypatch.setattr(profiles, "LOOK_PATIENCE_S", LIMIT_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The trace of `RUN`."""
    return trace(tmp_path / "logs" / "run" / "w.pt.trace.json")
