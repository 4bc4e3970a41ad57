"""Savings in words: the likely value first, the bounds that differ from it, and when nothing is saved."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.report.model import Saving
from tb_tidy_plugin.report.savings import basis_text, saving_text


@pytest.mark.parametrize(
    ("expected", "low", "high", "text"),
    [
        (12_000_000, 10_000_000, 13_000_000, "about 12 ms, at least 10 ms, at most 13 ms"),
        (12_000_000, 12_000_000, 13_000_000, "about 12 ms, at most 13 ms"),
        (12_000_000, 10_000_000, 12_000_000, "about 12 ms, at least 10 ms"),
        (12_000_000, 12_000_000, 12_000_000, "about 12 ms"),
        (12_000, 0, 13_000, "about 12 µs, at most 13 µs, nothing if other work fills the time that becomes free"),
        (12_000, 0, 12_000, "about 12 µs, nothing if other work fills the time that becomes free"),
        (0, 0, 78_683_500, "no saving expected, at most 78.7 ms"),
        (0, 0, 0, "no saving expected"),
    ],
)
def test_a_saving(expected: int, low: int, high: int, text: str) -> None:
    assert saving_text(Saving(expected, low, high, None, ["replayed"])) == text


def test_how_it_is_known() -> None:
    assert basis_text(["replayed", "measured"]) == "computed from the timeline, measured"
