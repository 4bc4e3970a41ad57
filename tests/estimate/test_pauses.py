"""The measurement of what a computation gains without pauses, in small and on a made-up machine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.estimate import pauses
from tests.estimate.pauses import Gain, gains, table


def test_computations_are_measured_alone_and_after_each_pause() -> None:
    found = gains(1, pauses_ms=(0.1, 0.2), passes=(1, 2), rounds=3, steps=2)
    assert [(gain.threads, gain.pause_ms, len(gain.shares)) for gain in found] == [(1, 0.1, 3), (1, 0.2, 3)] * 2
    assert all(gain.alone_ms > 0 for gain in found)


def test_the_gain_is_the_part_that_is_not_needed_without_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[float] = []

    def took(pause_ms: float, _: Callable[[], object], repeats: int, __: int) -> float:
        """One ms for each pass; a pause costs half of its own time, in the second round all of it."""
        rounds.extend([pause_ms] if not pause_ms else [])
        return (repeats + pause_ms * (0.5 if len(rounds) % 2 else 1.0)) / 1e3

    monkeypatch.setattr(pauses, "_after", took)
    found = gains(1, pauses_ms=(1.0, 2.0), passes=(1, 4), rounds=2, steps=1)
    assert [(gain.pause_ms, gain.alone_ms) for gain in found] == [(1.0, 1.0), (2.0, 1.0), (1.0, 4.0), (2.0, 4.0)]
    shares = [share for gain in found for share in gain.shares]
    assert shares == pytest.approx([1 / 3, 1 / 2, 1 / 2, 2 / 3, 1 / 9, 1 / 5, 1 / 5, 1 / 3])


def test_the_table_has_medians_and_ranges() -> None:
    found = [
        Gain(2, 0.3, 0.64, (0.02, -0.012, 0.011)),
        Gain(2, 3.0, 0.64, (0.2, 0.25, 0.214)),
        Gain(2, 0.3, 2.5, (0.0, 0.0, 0.0)),
        Gain(2, 3.0, 2.5, (0.1, 0.05, 0.3)),
    ]
    assert table(found) == (
        "| threads | computation | after 0.3 ms | after 3 ms |\n"
        "|--:|--:|--:|--:|\n"
        "| 2 | 0.6 ms | 1 % (-1 to 2) | 21 % (20 to 25) |\n"
        "| 2 | 2.5 ms | 0 % (0 to 0) | 10 % (5 to 30) |\n"
    )
