"""Matching of replayed kernels with captured launches, by their order.

A graph keeps the order of its capture, but not names: devices choose other kernels, split them, lose some. So two
sequences are compared as in a diff of two texts. Only pairs in every best comparison are certain.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.trace.columns import ABSENT, Mask, Numbers, Rows
from tb_tidy_plugin.trace.sets import among

EXACT, UNIQUE, RENAMED, DONOR = range(4)
"""Ways in which a kernel's launch is known: by an equal sequence; by a comparison of sequences that allows nothing
else; by its place between two certain kernels, under another name; by an eager iteration of the same model."""

LONG_DETOUR = 8
"""Pairs; a longer run that leaves the diagonal is another part of the graph."""

MOST_CELLS = 1 << 25
"""Most cells of a comparison's two tables, two bytes each: sequences of 5,792."""


class Pairs(msgspec.Struct, frozen=True):
    """Position of each replayed kernel's captured launch, and how it is known; `ABSENT` if unknown."""

    launch: Rows
    known: Numbers

    @classmethod
    def none(cls, count: int) -> Pairs:
        """No known launches."""
        return cls(np.full(count, ABSENT, np.int64), np.full(count, ABSENT, np.int32))

    @property
    def certain(self) -> Mask:
        """Mask of kernels that are `EXACT` or `UNIQUE`."""
        certain: Mask = (self.known == EXACT) | (self.known == UNIQUE)
        return certain


def numbered_texts(*sequences: Sequence[str]) -> list[Rows]:
    """The same sequences as numbers, equal for equal texts."""
    numbers: dict[str, int] = {}
    return [np.array([numbers.setdefault(each, len(numbers)) for each in texts], np.int64) for texts in sequences]


def matched(replay: Rows, capture: Rows) -> Pairs:
    """Pairs of two sequences on one stream, given as numbers of names."""
    if np.array_equal(replay, capture):
        return Pairs(np.arange(len(replay)), np.full(len(replay), EXACT, np.int32))
    pairs = Pairs.none(len(replay))
    if not len(replay) or not len(capture) or (len(replay) + 1) * (len(capture) + 1) > MOST_CELLS:
        return pairs
    launch = _without_detours(_in_every_comparison(replay, capture))
    pairs.launch[:] = launch
    pairs.known[launch != ABSENT] = UNIQUE
    _fill_holes(pairs, replay, capture)
    return pairs


def _in_every_comparison(replay: Rows, capture: Rows) -> Rows:
    """The partner of each kernel of `replay` that all longest common subsequences agree on, else `ABSENT`.

    A pair is in one of them if the lengths before and after it add up to the longest, less the pair itself. A kernel
    has its partner in all of them if that is the only such pair, and none of them leaves the kernel out.
    """
    before, behind = _lengths(replay, capture), _lengths(replay[::-1], capture[::-1])[::-1, ::-1]
    longest = before[-1, -1]
    partner = np.full(len(replay), ABSENT, np.int64)
    for at, name in enumerate(replay.tolist()):
        possible = np.flatnonzero((capture == name) & (before[at, :-1] + behind[at + 1, 1:] + 1 == longest))
        if len(possible) == 1 and not (before[at] + behind[at + 1] == longest).any():
            partner[at] = possible[0]
    return partner


def _without_detours(launch: Rows) -> Rows:
    """The pairs without short runs that leave the diagonal of their neighbours and come back.

    Lost or added kernels shift all later ones. Kernels that changed places with neighbours shift none, and may look
    as if they came from another layer.
    """
    sure = np.flatnonzero(launch != ABSENT)
    moved = launch[sure] - sure
    first = np.append(0, np.flatnonzero(np.diff(moved)) + 1) if len(sure) else sure
    by, length = moved[first], np.diff(np.append(first, len(sure)))
    inner = np.zeros(len(first), np.bool_)
    inner[1:-1] = (by[1:-1] - by[:-2]) * (by[2:] - by[1:-1]) < 0
    kept = launch.copy()
    kept[sure[np.repeat(inner & (length < LONG_DETOUR), length)]] = ABSENT
    return kept


def _lengths(left: Rows, right: Rows) -> NDArray[np.int16]:
    """Length of the longest common subsequence of each two prefixes."""
    lengths = np.zeros((len(left) + 1, len(right) + 1), np.int16)
    for at, name in enumerate(left.tolist()):
        above = lengths[at]
        np.maximum.accumulate(np.maximum(above[1:], above[:-1] + (right == name)), out=lengths[at + 1, 1:])
    return lengths


def _fill_holes(pairs: Pairs, replay: Rows, capture: Rows) -> None:
    """Pairs the kernels between two certain pairs if both sides have equally many.

    By their places if no name is on both sides, by their names if all are; otherwise they stay unknown.
    """
    sure = np.flatnonzero(pairs.launch != ABSENT)
    left, right = np.append(-1, sure), np.append(sure, len(pairs.launch))
    from_, until = np.append(-1, pairs.launch[sure]), np.append(pairs.launch[sure], len(capture))
    for low, high, first, last in zip(*(each.tolist() for each in (left, right, from_, until)), strict=True):
        if 1 < high - low == last - first and (low >= 0 or high < len(pairs.launch)):
            here, there = replay[low + 1 : high], capture[first + 1 : last]
            if np.array_equal(np.sort(here), np.sort(there)):
                pairs.launch[low + 1 + np.argsort(here, kind="stable")] = first + 1 + np.argsort(there, kind="stable")
            elif not among(here, there).any():
                pairs.launch[low + 1 : high] = np.arange(first + 1, last)
            else:
                continue
            pairs.known[low + 1 : high] = RENAMED


def spread(pairs: Pairs, replay: Rows, capture: Rows) -> Pairs:
    """`pairs`, extended where two certain pairs enclose only one name, more or less often on either side."""
    launch = pairs.launch.copy()
    sure = np.flatnonzero(pairs.certain)
    for low, high in zip(sure[:-1].tolist(), sure[1:].tolist(), strict=True):
        there = np.arange(pairs.launch[low] + 1, pairs.launch[high])
        if high - low > 1 and len(there) and len({*replay[low + 1 : high].tolist(), *capture[there].tolist()}) == 1:
            launch[low + 1 : high] = there[np.minimum(np.arange(high - low - 1), len(there) - 1)]
    return Pairs(launch, np.where((launch != ABSENT) & (pairs.known == ABSENT), RENAMED, pairs.known).astype(np.int32))


def by_occurrence(replay: Rows, capture: Rows) -> Pairs:
    """Pairs the k-th occurrence of each name with the k-th, if every name occurs equally often; for several streams.

    Pairs from the sequences themselves are certain; the others are only by place.
    """
    if not np.array_equal(np.sort(replay), np.sort(capture)):
        return Pairs.none(len(replay))
    of_replay, of_capture = np.argsort(replay, kind="stable"), np.argsort(capture, kind="stable")
    launch = np.empty(len(replay), np.int64)
    launch[of_replay] = of_capture
    sure = matched(replay, capture)
    agrees = sure.certain & (sure.launch == launch)
    return Pairs(launch, np.where(agrees, sure.known, RENAMED).astype(np.int32))


def by_position(count: int) -> Pairs:
    """Pairs each kernel with the launch at its place, if launches have no recorded names."""
    return Pairs(np.arange(count), np.full(count, EXACT, np.int32))
