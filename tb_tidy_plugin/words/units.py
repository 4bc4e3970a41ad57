"""Numbers and sizes with their own formatting, the one place where Python turns them into text.

One table of cases (`tests/words/units_cases.json`) tests this formatter and the frontend's.
"""

from __future__ import annotations

import math


class Bytes(int):
    """A size in bytes, shown in binary units (`4 KiB`)."""

    def __str__(self) -> str:
        return _scaled(int(self), 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


class Count(int):
    """A number of things, shown with thousands separators (`56,451`)."""

    def __str__(self) -> str:
        return f"{int(self):,}"


class Nanoseconds(int):
    """A duration in nanoseconds, shown in the largest unit that keeps it at 1 or above (`1.25 ms`)."""

    def __str__(self) -> str:
        return _scaled(int(self), 1000, ("ns", "µs", "ms", "s"))


class PerSecond(float):
    """A rate without its unit's name, which follows directly (`81.3 G` of `81.3 GFLOP/s`)."""

    def __str__(self) -> str:
        return _scaled(float(self), 1000, ("", "k", "M", "G", "T", "P"))


class Share(float):
    """A part of a whole between 0 and 1, shown as per cent (`12.5 %`)."""

    def __str__(self) -> str:
        return f"{_three_digits(float(self) * 100)} %"


def part_text(share: float) -> str:
    """A part of a sum in a table: `<0.01 %` for one that is there, but would read `0 %`."""
    return "<0.01 %" if share > 0 and str(Share(share)) == str(Share(0)) else str(Share(share))


class Sizes(tuple[int, ...]):
    """Sizes or strides by dimension, shown as `64×3`; empty if unknown."""

    __slots__ = ()

    def __str__(self) -> str:
        return "×".join(map(str, self))


def between(low_ns: int, high_ns: int) -> str:
    """`1 ms to 2 ms`, or one of them if they read the same."""
    low, high = str(Nanoseconds(low_ns)), str(Nanoseconds(high_ns))
    return low if low == high else f"{low} to {high}"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 operator`, `2,048 operators`. `many` is for plurals that need more than an `s`."""
    return f"{Count(number)} {one if number == 1 else many or f'{one}s'}"


def times(number: float) -> str:
    """`once`, or `3 times`; a mean has four digits at most."""
    return "once" if number == 1 else f"{number:.4g} times" if number < 1e4 else f"{number:,.0f} times"


def _scaled(value: float, base: int, units: tuple[str, ...]) -> str:
    """The value in the largest unit in which the rounded number is 1 or more, so that no unit ever shows `1000`."""
    number, unit = float(value), units[0]
    for larger in units[1:]:
        if abs(_rounded(number)) < base:
            break
        number, unit = number / base, larger
    return f"{_three_digits(number)} {unit}"


def _three_digits(number: float) -> str:
    """Three significant digits without trailing zeros, never in exponent form."""
    text = f"{_rounded(number):.{_decimals(number)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(number: float) -> int:
    magnitude = abs(number)
    return 0 if magnitude >= 100 else 1 if magnitude >= 10 else 2


def _rounded(number: float) -> float:
    """Rounds half away from zero, as the page does; never minus zero."""
    scale = 10.0 ** _decimals(number)
    magnitude: float = math.floor(abs(number) * scale + 0.5) / scale
    return -magnitude if number < 0 < magnitude else magnitude
