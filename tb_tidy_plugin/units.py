"""Numbers that know their unit, and the one place where Python turns them into text.

The same table of cases (`tests/units_cases.json`) holds this formatter and the frontend's.
"""

from __future__ import annotations

from typing import TypeAlias


class Bytes(int):
    """A size in bytes, shown in binary units (`4 KiB`)."""

    def __str__(self) -> str:
        return _scaled(int(self), 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


class Nanoseconds(int):
    """A duration in nanoseconds, shown in the largest unit that keeps it at 1 or above (`1.25 ms`)."""

    def __str__(self) -> str:
        return _scaled(int(self), 1000, ("ns", "µs", "ms", "s"))


class Share(float):
    """A part of a whole between 0 and 1, shown as per cent (`12.5 %`)."""

    def __str__(self) -> str:
        return f"{_three_digits(float(self) * 100)} %"


Fact: TypeAlias = Bytes | Nanoseconds | Share | int | str


def _scaled(value: int, base: int, units: tuple[str, ...]) -> str:
    number, unit = float(value), units[0]
    for larger in units[1:]:
        if abs(number) < base:
            break
        number, unit = number / base, larger
    return f"{_three_digits(number)} {unit}"


def _three_digits(number: float) -> str:
    """Three significant digits, trailing zeros dropped, never in exponent form."""
    magnitude = abs(number)
    decimals = 0 if magnitude >= 100 else 1 if magnitude >= 10 else 2
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
