"""Two things timed in turns, and the ratio of their times.

Timed one after the other, two statements differ by whatever else the machine does meanwhile: on a busy one the sign was
wrong for 3 of 26 pairs. Blocks of both in turns see the same machine, so their ratio is taken pair by pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

Time: TypeAlias = Callable[[int], float]
"""Runs something this many times; returns the seconds of one run."""

OnBlock: TypeAlias = Callable[[int, float], object]
"""Called with the pairs of blocks so far and the used part of the budget, 0 to 1."""

LEAST_BLOCKS, USUAL_BLOCKS, MOST_BLOCKS = 5, 10, 200
"""Pairs of blocks: the fewest for an interval, the fewest before its width counts, and the most."""

NARROW_INTERVAL = 0.05  # width of the interval that ends a measurement
BLOCKS_IN_BUDGET = 60  # of both statements together
BLOCK_S = (0.001, 0.05)  # shorter ones are lost in the clock and the wait for the device; longer ones see fewer turns
MOST_OVERTIME = 4  # times the budget, for statements whose fewest blocks exceed it
_RESAMPLES = 2000
_INTERVAL = (2.5, 97.5)  # per cent


class TimeRatio(msgspec.Struct, frozen=True):
    """The time of the second divided by that of the first, with its 95 % interval."""

    middle: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Width of the interval, relative to the longer of both times: a tiny time need not be known exactly."""
        return (self.high - self.low) / max(self.middle, 1.0)


class Blocks(msgspec.Struct, frozen=True):
    """Seconds of one call, by pair of blocks, and their ratio."""

    first: Sequence[float]
    second: Sequence[float]
    ratio: TimeRatio

    @property
    def typical(self) -> tuple[float, float]:
        """Seconds of one call of each."""
        return typical_times(self.first, self.second, self.ratio)


def ratio_of(first: Sequence[float], second: Sequence[float]) -> TimeRatio:
    """The median ratio of pairs; its interval from resampled pairs, with a fixed seed."""
    ratios = np.array(second) / np.array(first)
    drawn = np.random.default_rng(0).integers(len(ratios), size=(_RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(ratios[drawn], axis=1), _INTERVAL)
    return TimeRatio(float(np.median(ratios)), float(low), float(high))


def typical_times(first: Sequence[float], second: Sequence[float], ratio: TimeRatio) -> tuple[float, float]:
    """The two times with this ratio that are nearest to both medians, each by the same factor.

    On a busy machine the medians may come from blocks of different pairs, and then their ratio is another one.
    """
    middles = float(np.median(first)), float(np.median(second))
    mean = (middles[0] * middles[1]) ** 0.5
    return mean / ratio.middle**0.5, mean * ratio.middle**0.5


def in_turns(first: Time, second: Time, budget_s: float, on_block: OnBlock) -> Blocks:
    """Times both in turns until the ratio's interval is narrow or the budget is used.

    The first of each pair alternates, so that neither always finds the caches as its own last block left them.
    """
    began = time.perf_counter()
    block_s = min(max(budget_s / BLOCKS_IN_BUDGET, BLOCK_S[0]), BLOCK_S[1])
    both = [(each, calls_for(each, block_s)) for each in (first, second)]
    taken: tuple[list[float], list[float]] = ([], [])
    ratio: TimeRatio | None = None
    while not _is_enough(len(taken[0]), ratio, (time.perf_counter() - began) / budget_s):
        for at in (0, 1) if len(taken[0]) % 2 else (1, 0):
            timed, calls = both[at]
            taken[at].append(timed(calls))
        ratio = ratio_of(*taken)
        on_block(len(taken[0]), min((time.perf_counter() - began) / budget_s, 1.0))
    return Blocks(*taken, ratio or ratio_of(*taken))


def calls_for(timed: Time, block_s: float) -> int:
    """Number of calls in a block of about this duration."""
    calls = 1
    while (took_s := timed(calls) * calls) < block_s / 10:
        calls *= 10
    return max(round(calls * block_s / took_s), 1)


def _is_enough(blocks: int, ratio: TimeRatio | None, used: float) -> bool:
    if ratio is None or blocks < LEAST_BLOCKS:
        return blocks > 0 and used >= MOST_OVERTIME
    return used >= 1 or blocks >= MOST_BLOCKS or (blocks >= USUAL_BLOCKS and ratio.width < NARROW_INTERVAL)


def evenly_chosen(values: Sequence[float], most: int) -> list[float]:
    """At most `most` of the values, evenly chosen."""
    if len(values) <= most:
        return list(values)
    return [values[at] for at in np.linspace(0, len(values) - 1, most).astype(int).tolist()]
