"""Waiting for what happens in another thread or process, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PATIENCE_S = 240.0
"""How long a test waits for what must come: as long as a busy machine may take. It goes on as soon as it is there."""

PERIOD_S = 0.02


def until(ask: Callable[[], Value], within_s: float = PATIENCE_S) -> Value:
    """The first answer of `ask` that is true; fails where none comes in time."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not so after {within_s} s; the last answer was {answer!r}"
        time.sleep(PERIOD_S)
    return answer
