"""Distinct values, each stored once and represented by a small number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value")


class _Numbers(dict[_Value, int]):
    def __missing__(self, value: _Value) -> int:
        number = self[value] = len(self)
        return number


class NumberTable(Generic[_Value]):
    """Numbers for values, in order of first appearance."""

    def __init__(self) -> None:
        self._numbers = _Numbers[_Value]()

    def number(self, value: _Value) -> int:
        """The number of `value`, a new one if it was not seen before."""
        return self._numbers[value]

    def numbers(self, values: Iterable[_Value], count: int) -> NDArray[np.int32]:
        """Numbers of `count` values, as one column."""
        return np.fromiter(map(self._numbers.__getitem__, values), np.int32, count)

    def values(self) -> tuple[_Value, ...]:
        """All values; the position is the number."""
        return tuple(self._numbers)


def numbers_where(texts: tuple[str, ...], test: Callable[[str], object]) -> NDArray[np.int32]:
    """Numbers of the texts for which `test` holds: one test per distinct text, however many rows have it."""
    return np.array([number for number, text in enumerate(texts) if test(text)], np.int32)
