"""Distinct values, each stored once and represented by a small number."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from itertools import compress, count
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value")
_Asked = TypeVar("_Asked", bound=Hashable)
_Answer = TypeVar("_Answer")

MOST_ANSWERS, MOST_OF_INPUTS = 1 << 14, 1 << 12
"""Most answers that are kept of one function: of names, and of operators' inputs, which take more memory."""


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


class _Answers(dict[Any, Any]):
    """The answers of a function; a match of a regular expression, which holds the text, is kept as True."""

    def __init__(self, of: Callable[[Any], object], most: int) -> None:
        self._of, self._most = of, most

    def __missing__(self, asked: Hashable) -> object:
        if len(self) >= self._most:
            self.clear()
        answer = self._of(asked)
        answer = self[asked] = bool(answer) if isinstance(answer, re.Match) else answer
        return answer


class KeptAnswers:
    """The answers that this process keeps, by function; None if it keeps none."""

    answers: ClassVar[dict[Callable[[Any], object], _Answers] | None] = None


def remember_answers() -> None:
    """Keeps answers about names and inputs: a process that reads the ranks of one job meets the same ones again."""
    KeptAnswers.answers = KeptAnswers.answers or {}


def asked_once(of: Callable[[_Asked], _Answer], most: int = MOST_OF_INPUTS) -> Callable[[_Asked], _Answer]:
    """`of`, a function of a module whose answer depends on nothing else, or the same with answers that are kept.

    All of them are forgotten once there are `most`.
    """
    if KeptAnswers.answers is None:
        return of
    kept = KeptAnswers.answers.get(of)
    if kept is None:
        kept = KeptAnswers.answers.setdefault(of, _Answers(of, most))
    return kept.__getitem__


def answers_of(test: Callable[[str], object]) -> Callable[[str], object]:
    """`test`, or the same with answers that are kept if it is a method of a regular expression."""
    return asked_once(test, MOST_ANSWERS) if isinstance(getattr(test, "__self__", None), re.Pattern) else test


def numbers_where(texts: tuple[str, ...], test: Callable[[str], object]) -> NDArray[np.int32]:
    """Numbers of the texts for which `test` holds: one test per distinct text, however many rows have it."""
    holds = answers_of(test)
    return np.array([*compress(count(), map(holds, texts))], np.int32)
