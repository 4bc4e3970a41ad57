"""Where lines end when text is longer than they are."""

from __future__ import annotations

import pytest
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tb_tidy_plugin.cli.printed import WIDTH_WITHOUT_TERMINAL, as_lines


def filled(length: int) -> str:
    """So many characters, the last one a space."""
    return "x" * (length - 1) + " "


@pytest.mark.parametrize("figure", ["33.7 %", "1.25 ms", "20 µs", "3 s", "640 KiB", "12 B", "1.5 GB"])
def test_a_number_and_its_unit_stay_on_one_line(figure: str) -> None:
    number, _ = figure.split()
    before = filled(WIDTH_WITHOUT_TERMINAL - len(number))  # room for the number, not for its unit
    assert as_lines(f"{before}{figure}, more") == f"{before.strip()}\n{figure}, more\n"


def test_words_after_a_number_are_no_unit() -> None:
    before = filled(WIDTH_WITHOUT_TERMINAL - len("12"))
    assert as_lines(f"{before}12 steps") == f"{before}12\nsteps\n"


def test_in_tables_and_indented_text_too() -> None:
    table = Table.grid()
    table.add_column(width=8)
    table.add_row(Text.assemble("busy ", ("33.7 %", "bold")))
    assert as_lines(table, Padding(table, (0, 0, 0, 2))) == "busy\n33.7 %\n  busy\n  33.7 %\n"


def test_no_part_of_a_name_becomes_an_emoji() -> None:
    assert as_lines("model:fire:forward") == "model:fire:forward\n"
