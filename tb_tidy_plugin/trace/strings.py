"""Distinct values, each stored once and represented by a small number."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import compress, count
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value")

MOST_ANSWERS = 1 << 16
"""Most answers that are kept for one expression."""


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

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, values: Iterable[_Value], count: int) -> NDArray[np.int32]:
        """Numbers of `count` values, as one column."""
        return np.fromiter(map(self._numbers.__getitem__, values), np.int32, count)

    def values(self) -> tuple[_Value, ...]:
        """All values; the position is the number."""
        return tuple(self._numbers)


class _Answers(dict[str, bool]):
    """The answers of a test."""

    def __init__(self, test: Callable[[str], object]) -> None:
        self._test = test

    def __missing__(self, text: str) -> bool:
        if len(self) > MOST_ANSWERS:
            self.clear()
        answer = self[text] = bool(self._test(text))
        return answer


class KeptAnswers:
    """The answers of regular expressions in this process, by expression and method; None if they are not kept."""

    answers: ClassVar[dict[Callable[[str], object], _Answers] | None] = None


def remember_answers() -> None:
    """Keeps answers of regular expressions: a process that reads the ranks of one job meets the same names again."""
    KeptAnswers.answers = KeptAnswers.answers or {}


def answers_of(test: Callable[[str], object]) -> Callable[[str], object]:
    """`test`, or the same with answers that are kept."""
    if KeptAnswers.answers is None or not isinstance(getattr(test, "__self__", None), re.Pattern):
        return test
    return KeptAnswers.answers.setdefault(test, _Answers(test)).__getitem__


def numbers_where(texts: tuple[str, ...], test: Callable[[str], object]) -> NDArray[np.int32]:
    """Numbers of the texts for which `test` holds: one test per distinct text, however many rows have it."""
    holds = answers_of(test)
    return np.array([*compress(count(), map(holds, texts))], np.int32)
