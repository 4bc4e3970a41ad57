"""Waiting, with a limit, for another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PATIENCE_S = 240.0
"""Limit of a wait in seconds, long enough for a busy machine. The test goes on as soon as the answer is there."""

PERIOD_S = 0.02


def until(ask: Callable[[], Value], within_s: float = PATIENCE_S) -> Value:
    """The first true answer of `ask`; fails if none comes in time."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not so after {within_s} s; the last answer was {answer!r}"
        time.sleep(PERIOD_S)
    return answer
