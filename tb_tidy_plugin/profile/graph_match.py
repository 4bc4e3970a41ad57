"""Which captured launch a replayed kernel comes from, by the order of both.

A graph keeps the order in which it was captured, but not names: devices choose other kernels, split them, lose some. So
two sequences are compared as texts are. Only pairs that every best comparison holds are certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.trace.columns import ABSENT, Mask, Numbers, Rows

EXACT, UNIQUE, RENAMED, DONOR = range(4)
"""How a kernel's launch is known: by an equal sequence; by a comparison of sequences that allows nothing else; by its
place between two that are certain, under another name; by an eager iteration of the same model."""

MOST_CELLS = 1 << 25
"""Of a comparison's two tables, two bytes each: sequences of 5,792."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """For each replayed kernel the position of its captured launch and how it is known, `ABSENT` where it is not."""

    launch: Rows
    known: Numbers

    @classmethod
    def none(cls, count: int) -> Pairs:
        """Nothing is known."""
        return cls(np.full(count, ABSENT, np.int64), np.full(count, ABSENT, np.int32))

    @property
    def certain(self) -> Mask:
        """Which kernels are `EXACT` or `UNIQUE`."""
        certain: Mask = (self.known == EXACT) | (self.known == UNIQUE)
        return certain


def numbered(*sequences: Sequence[str]) -> list[Rows]:
    """The same sequences as numbers, equal for equal texts."""
    numbers: dict[str, int] = {}
    return [np.array([numbers.setdefault(each, len(numbers)) for each in texts], np.int64) for texts in sequences]


def compared(replay: Rows, capture: Rows) -> Pairs:
    """Pairs of two sequences on one stream, given as numbers of names."""
    if np.array_equal(replay, capture):
        return Pairs(np.arange(len(replay)), np.full(len(replay), EXACT, np.int32))
    pairs = Pairs.none(len(replay))
    if not len(replay) or not len(capture) or (len(replay) + 1) * (len(capture) + 1) > MOST_CELLS:
        return pairs
    launch = _in_every_comparison(replay, capture)
    pairs.launch[:] = launch
    pairs.known[launch != ABSENT] = UNIQUE
    _fill_holes(pairs, len(capture))
    return pairs


def _in_every_comparison(replay: Rows, capture: Rows) -> Rows:
    """For each of `replay` its partner where all longest common subsequences give it this one, else `ABSENT`.

    A pair is in one of them if as much fits before and behind it as the longest holds, less itself. A kernel has its
    partner in all of them if that is the only such pair, and none of them leaves the kernel out.
    """
    before, behind = _lengths(replay, capture), _lengths(replay[::-1], capture[::-1])[::-1, ::-1]
    longest = before[-1, -1]
    partner = np.full(len(replay), ABSENT, np.int64)
    for at, name in enumerate(replay.tolist()):
        possible = np.flatnonzero((capture == name) & (before[at, :-1] + behind[at + 1, 1:] + 1 == longest))
        if len(possible) == 1 and not (before[at] + behind[at + 1] == longest).any():
            partner[at] = possible[0]
    return partner


def _lengths(left: Rows, right: Rows) -> NDArray[np.int16]:
    """Length of the longest common subsequence of each two beginnings."""
    lengths = np.zeros((len(left) + 1, len(right) + 1), np.int16)
    for at, name in enumerate(left.tolist()):
        above = lengths[at]
        np.maximum.accumulate(np.maximum(above[1:], above[:-1] + (right == name)), out=lengths[at + 1, 1:])
    return lengths


def _fill_holes(pairs: Pairs, captured: int) -> None:
    """Pairs what is left between two certain pairs where both sides have equally much of it."""
    sure = np.flatnonzero(pairs.launch != ABSENT)
    left, right = np.append(-1, sure), np.append(sure, len(pairs.launch))
    from_, until = np.append(-1, pairs.launch[sure]), np.append(pairs.launch[sure], captured)
    for low, high, first, last in zip(*(each.tolist() for each in (left, right, from_, until)), strict=True):
        if 1 < high - low == last - first and (low >= 0 or high < len(pairs.launch)):
            pairs.launch[low + 1 : high] = np.arange(first + 1, last)
            pairs.known[low + 1 : high] = RENAMED


def by_occurrence(replay: Rows, capture: Rows) -> Pairs:
    """Pairs the k-th of each name with the k-th, where every name comes equally often; of several streams.

    What the sequences themselves give is certain; the rest is by its place only.
    """
    if not np.array_equal(np.sort(replay), np.sort(capture)):
        return Pairs.none(len(replay))
    of_replay, of_capture = np.argsort(replay, kind="stable"), np.argsort(capture, kind="stable")
    launch = np.empty(len(replay), np.int64)
    launch[of_replay] = of_capture
    sure = compared(replay, capture)
    agrees = sure.certain & (sure.launch == launch)
    return Pairs(launch, np.where(agrees, sure.known, RENAMED).astype(np.int32))


def by_position(count: int) -> Pairs:
    """Pairs each kernel with the launch at its place, where names were not recorded at the launches."""
    return Pairs(np.arange(count), np.full(count, EXACT, np.int32))
