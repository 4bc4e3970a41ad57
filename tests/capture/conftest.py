"""What the tests of capturing share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tb_tidy_plugin.capture import guarded


@pytest.fixture(autouse=True)
def _every_failure_is_said_again() -> Iterator[None]:
    guarded.logged_once.cache_clear()
    yield
    guarded.logged_once.cache_clear()
