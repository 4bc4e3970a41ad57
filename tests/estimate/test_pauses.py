"""The measurement of what a computation gains without pauses, in small."""

from __future__ import annotations

from tests.estimate.__main__ import with_table
from tests.estimate.pauses import END, START, Gain, gains, table


def test_each_length_of_computation_is_measured_after_each_pause() -> None:
    found = gains(1, pauses_ms=(0.1, 0.2), passes=(1, 2), rounds=3, steps=2)
    assert [(gain.threads, gain.pause_ms, len(gain.shares)) for gain in found] == [(1, 0.1, 3), (1, 0.2, 3)] * 2
    assert all(gain.alone_ms > 0 and max(gain.shares) < 1 for gain in found)
    assert found[0].alone_ms == found[1].alone_ms, "against the same rounds without pauses"


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


def test_the_table_goes_between_its_marks() -> None:
    page = f"before\n{START}\n\nold\n\n{END}\nafter"
    assert with_table(page, "new\n", START, END) == f"before\n{START}\n\nnew\n\n{END}\nafter"
