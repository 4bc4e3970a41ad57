"""What the tests of capturing share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from tb_tidy_plugin.capture import guarded


@pytest.fixture(autouse=True)
def _every_failure_is_said_again() -> Iterator[None]:
    guarded.logged_once.cache_clear()
    yield
    guarded.logged_once.cache_clear()


@pytest.fixture(autouse=True)
def _torch_leaves_its_drafts_elsewhere(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot write them to their end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look at a written trace is as patient as a busy machine needs."""
    monkeypatch.setattr("tb_tidy_plugin.capture.handler.LEAST_LOOK_S", 240.0)
