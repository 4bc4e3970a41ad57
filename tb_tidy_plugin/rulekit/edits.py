"""Changes on the timeline by fixing a match: a closed union, read by the estimate, never run."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Remove(msgspec.Struct, frozen=True):
    """These events, and all below them, would not happen."""

    events: tuple[int, ...]


class Scale(msgspec.Struct, frozen=True):
    """These events would take `low` to `high` times their present time, most likely `factor` times (0 to 1)."""

    events: tuple[int, ...]
    factor: float
    low: float
    high: float


class Unblock(msgspec.Struct, frozen=True):
    """The host would no longer wait in this event."""

    event: int


class Overlap(msgspec.Struct, frozen=True):
    """These events would run beside the rest of the step instead of in line with it, `at_once` at a time.

    Most likely a `left` part of each stays in line (0 to 1), such as taking over the result.
    """

    events: tuple[int, ...]
    at_once: int = 1
    left: float = 0.0


Edit: TypeAlias = Remove | Scale | Unblock | Overlap
