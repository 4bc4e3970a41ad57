"""Figures as the page writes them into columns: with trailing zeros, so that those of one unit are equally long."""

from __future__ import annotations

from tb_tidy_plugin.words.units import Nanoseconds, Share

WHOLE = ("ns", "B")
"""Units of which there are no parts."""


def in_column(figure: Nanoseconds | Share) -> str:
    """The same three digits as in a sentence: `83.0 ms` for `83 ms`, `0 ns` for nothing."""
    number, unit = str(figure).split(" ")
    whole, _, rest = number.partition(".")
    places = {1: 2, 2: 1}.get(len(whole.lstrip("-")), 0)
    if unit in WHOLE or number == "0" or not places:
        return str(figure)
    return f"{whole}.{rest:0<{places}} {unit}"
