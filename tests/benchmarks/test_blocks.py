"""Timing in turns: what the ratio of two made-up clocks is, and when it is known well enough."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.benchmarks.blocks import (
    LEAST_BLOCKS,
    MOST_BLOCKS,
    NARROW_INTERVAL,
    USUAL_BLOCKS,
    Time,
    calls_for,
    evenly_chosen,
    in_turns,
    ratio_of,
    typical_times,
)


def steady(seconds: float) -> Time:
    return lambda calls: seconds


def noisy(seconds: float, swing: float, seed: int) -> Time:
    numbers = random.Random(seed)
    return lambda calls: seconds * numbers.uniform(1 - swing, 1 + swing)


def drifting(seconds: float, clock: list[int]) -> Time:
    """Slower by a twentieth with every block of either, as on a machine that throttles."""

    def timed(calls: int) -> float:
        clock[0] += 1
        return seconds * (1 + clock[0] / 20)

    return timed


def test_a_steady_pair_ends_after_the_usual_blocks() -> None:
    blocks = in_turns(steady(0.2), steady(0.1), 60, lambda *_: None)
    assert len(blocks.first) == USUAL_BLOCKS
    assert (blocks.ratio.low, blocks.ratio.middle, blocks.ratio.high) == (0.5, 0.5, 0.5)


def test_a_noisy_pair_is_measured_for_longer_and_its_interval_holds_the_truth() -> None:
    blocks = in_turns(noisy(0.2, 0.3, 1), noisy(0.1, 0.3, 2), 60, lambda *_: None)
    assert USUAL_BLOCKS < len(blocks.first) <= MOST_BLOCKS
    assert blocks.ratio.low < 0.5 < blocks.ratio.high
    assert blocks.ratio.width < NARROW_INTERVAL or len(blocks.first) == MOST_BLOCKS


def test_what_slows_both_does_not_change_the_ratio_much() -> None:
    clock = [0]
    blocks = in_turns(drifting(0.1, clock), drifting(0.1, clock), 60, lambda *_: None)
    assert blocks.first[-1] > 1.5 * blocks.first[0]
    assert blocks.ratio.middle == pytest.approx(1, abs=0.03)


def test_a_used_budget_ends_it_but_not_before_the_fewest_blocks() -> None:
    seen: list[tuple[int, float]] = []
    in_turns(noisy(0.2, 0.9, 1), noisy(0.2, 0.9, 2), 1e-9, lambda blocks, used: seen.append((blocks, used)))
    assert seen[-1] == (1, 1.0)  # far beyond the budget, not even the fewest are waited for
    enough = in_turns(noisy(0.2, 0.9, 1), noisy(0.2, 0.9, 2), 60, lambda *_: None)
    assert len(enough.first) >= LEAST_BLOCKS


def test_short_calls_are_timed_many_at_a_time() -> None:
    assert calls_for(steady(1e-6), 0.03) == 30_000
    assert calls_for(steady(2.0), 0.03) == 1


def test_one_outlier_does_not_move_the_ratio() -> None:
    ratio = ratio_of([1.0] * 20, [0.5] * 19 + [50.0])
    assert (ratio.low, ratio.middle, ratio.high) == (0.5, 0.5, 0.5)


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40), st.floats(0.01, 100))
def test_the_interval_holds_the_ratio(times: list[float], factor: float) -> None:
    ratio = ratio_of(times, [factor * each for each in times[::-1]])
    assert ratio.low <= ratio.middle * (1 + 1e-9)
    assert ratio.middle <= ratio.high * (1 + 1e-9)


def test_samples_are_thinned_evenly() -> None:
    assert evenly_chosen([1.0, 2.0], 3) == [1.0, 2.0]
    assert evenly_chosen([float(each) for each in range(101)], 3) == [0.0, 50.0, 100.0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([4.0, 4.0, 4.0], [2.0, 2.0, 2.0]),
        ([1.0, 10.0, 4.0, 4.0, 1.0], [2.0, 3.0, 4.0, 8.0, 9.0]),  # medians 4 and 4, ratios 2, 0.3, 1, 2, 9
        ([4.17, 4.0, 9.0, 4.3, 2.0], [3.98, 2.0, 3.0, 4.0, 8.0]),
    ],
)
def test_the_times_of_both_have_the_ratio_and_are_nearest_to_their_medians(
    first: list[float], second: list[float]
) -> None:
    ratio = ratio_of(first, second)
    before, after = typical_times(first, second, ratio)
    assert after / before == pytest.approx(ratio.middle)
    assert before / statistics.median(first) == pytest.approx(statistics.median(second) / after)


def test_the_times_of_unequal_medians_are_known_by_hand() -> None:
    """The medians are 4 and 4, and the median of the ratios is 2."""
    first, second = [1.0, 10.0, 4.0, 4.0, 1.0], [2.0, 3.0, 4.0, 8.0, 9.0]
    assert ratio_of(first, second).middle == 2
    assert typical_times(first, second, ratio_of(first, second)) == pytest.approx((8**0.5, 32**0.5))
