"""Bounds of a budget, as a test writes them: `400`, `"<=400"`, `">=1"`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

CountLimit: TypeAlias = int | str

_WRITTEN = re.compile(r"(<=|<|==|>=|>) *(\d[\d_]*)")
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
_WORDS = {"<=": "at most", "<": "fewer than", "==": "exactly", ">=": "at least", ">": "more than"}


@dataclass(frozen=True, slots=True)
class CountBound:
    """A comparison with a number."""

    comparison: str
    number: int

    def holds(self, value: int) -> bool:
        """True if `value` is within the bound."""
        return HOLDS[self.comparison](value, self.number)

    @property
    def words(self) -> str:
        return _WORDS[self.comparison]


def bound_of(name: str, limit: CountLimit) -> CountBound:
    """The bound that a test gives for the budget `name`; a number is an upper bound.

    Raises:
        ValueError: it is neither a number, 0 or greater, nor a comparison with one.
    """
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return CountBound("<=", limit)
    written = _WRITTEN.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if written is None:
        raise ValueError(f'{name}={limit!r} must be a number, 0 or greater, or a comparison such as "<=400"')
    return CountBound(written[1], int(written[2]))
