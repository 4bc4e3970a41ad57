"""A change of a source text as splices: everything outside them stays the same, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

SAME_RESULTS = "same results"
SAME_UP_TO_ROUNDING = "same up to rounding"


def changes_behaviour(how: str) -> str:
    """The safety of a change that alters the program's behaviour."""
    return f"changes behaviour: {how}"


class Unfixable(Exception):  # noqa: N818 - not an error: the answer of a fixer that knows no right change
    """A place for which a rule has no change; the text is a sentence that says why."""


class Spot(msgspec.Struct, frozen=True):
    """A place of a finding in a source text.

    Attributes:
        lines: 1-based, those that may have called the finding's work.
        function: the name of the function around them, `<module>` at module level.
    """

    lines: range
    function: str


class Splice(msgspec.Struct, frozen=True, order=True):
    """Replaces the characters from `start` up to `end` by `new`; offsets in the text, from 0."""

    start: int
    end: int
    new: str


class Change(msgspec.Struct, frozen=True):
    """A change of a source text.

    Attributes:
        splices: in any order; they do not overlap.
        safety: `SAME_RESULTS`, `SAME_UP_TO_ROUNDING` or the result of `changes_behaviour`.
        check: what the user must check before using the change, one sentence; empty if nothing is left to check.
    """

    splices: tuple[Splice, ...]
    safety: str
    check: str = ""


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with all splices applied."""
    parts: list[str] = []
    at = 0
    for splice in sorted(splices):
        parts += [text[at : splice.start], splice.new]
        at = splice.end
    return "".join((*parts, text[at:]))


def collide(splices: Sequence[Splice]) -> bool:
    """True if any two of them change the same characters, or insert anything but whole lines at the same offset."""
    ordered = sorted(splices)
    return any(
        after.start < before.end or (after.start == before.start and not (_is_line(before) and _is_line(after)))
        for before, after in pairwise(ordered)
    )


def _is_line(splice: Splice) -> bool:
    return splice.start == splice.end and splice.new.endswith(("\n", "\r"))
