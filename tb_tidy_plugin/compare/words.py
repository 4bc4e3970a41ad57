"""Words that text and Markdown share."""

from __future__ import annotations

from tb_tidy_plugin.compare.model import Ratio, Verdict
from tb_tidy_plugin.units import Nanoseconds

VERDICTS: dict[Verdict, str] = {
    "faster": "Faster",
    "slower": "Slower",
    "no_clear_difference": "No clear difference",
}


def ratio_words(ratio: Ratio) -> str:
    """`step time ×0.63 (0.58 to 0.68)`: candidate divided by baseline."""
    return f"step time ×{ratio.value:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"


def time_words(time_ns: int) -> str:
    """A time that may be below zero."""
    return f"{'−' if time_ns < 0 else ''}{Nanoseconds(abs(time_ns))}"


def change_words(before_ns: int, after_ns: int) -> str:
    """The difference with its sign."""
    difference = after_ns - before_ns
    return f"{'+' if difference > 0 else ''}{time_words(difference)}"
