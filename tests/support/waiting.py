"""Waiting for what happens in another thread or process, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

PERIOD_S = 0.02


def until(ask: Callable[[], Value], within_s: float = 30.0) -> Value:
    """The first answer of `ask` that is true; fails where none comes in time."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not so after {within_s} s; the last answer was {answer!r}"
        time.sleep(PERIOD_S)
    return answer
