"""Interval arithmetic, compiled and with numpy, against counting nanosecond by nanosecond."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.profile.events import intervals
from tb_tidy_plugin.profile.events.intervals import Intervals, cut

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 25)), max_size=25)


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.compiled, id="compiled"), pytest.param(False, id="numpy")],
    autouse=True,
    scope="module",
)
def is_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test runs with both."""
    if request.param and not intervals.IS_COMPILED:
        pytest.skip("the loops over intervals were not compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "IS_COMPILED", request.param)
        yield


def make(pairs: list[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in pairs], np.int64)
    return Intervals.union(starts, starts + np.array([length for _, length in pairs], np.int64))


def covered(pairs: list[tuple[int, int]]) -> set[int]:
    return {time for start, length in pairs for time in range(start, start + length)}


def test_spans() -> None:
    assert Intervals(np.array([1, 5]), np.array([3, 6])).spans == [(1, 3), (5, 6)]
    assert Intervals.none().spans == []


@given(PAIRS)
def test_union_counts_each_nanosecond_once(pairs: list[tuple[int, int]]) -> None:
    union = make(pairs)
    assert union.total_ns == len(covered(pairs))
    assert (union.starts < union.ends).all()
    assert (union.starts[1:] > union.ends[:-1]).all()


@given(PAIRS, PAIRS)
def test_overlap(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    assert make(left).overlap_ns(make(right)) == len(covered(left) & covered(right))


@given(PAIRS, PAIRS)
def test_what_either_covers(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    both = make(left).plus(make(right))
    assert both.total_ns == len(covered(left) | covered(right))
    assert (both.starts[1:] > both.ends[:-1]).all()


@given(PAIRS, st.integers(0, 90), st.integers(0, 40))
def test_time_within_a_window(pairs: list[tuple[int, int]], start: int, length: int) -> None:
    window = make(pairs).within(np.array([start]), np.array([start + length]))
    assert window.tolist() == [len(covered(pairs) & set(range(start, start + length)))]


@given(PAIRS, st.lists(st.integers(-5, 90), max_size=20))
def test_time_before_any_times_in_any_order(pairs: list[tuple[int, int]], times: list[int]) -> None:
    expected = [len([each for each in covered(pairs) if each < time]) for time in times]
    assert make(pairs).covered_before(np.array(times, np.int64)).tolist() == expected
    assert make(pairs).covered_before(np.array(sorted(times), np.int64)).tolist() == sorted(expected)


def points(intervals: Intervals) -> set[int]:
    return {time for start, end in zip(intervals.starts, intervals.ends, strict=True) for time in range(start, end)}


@given(PAIRS, PAIRS)
def test_intersection_and_difference(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    both, rest = make(left).intersection(make(right)), make(left).minus(make(right))
    assert points(both) == covered(left) & covered(right)
    assert points(rest) == covered(left) - covered(right)
    for found in (both, rest):
        assert (found.starts < found.ends).all()
        assert (found.starts[1:] >= found.ends[:-1]).all()


@given(PAIRS, st.integers(-5, 95))
def test_containing(pairs: list[tuple[int, int]], time: int) -> None:
    assert make(pairs).containing(np.array([time])).tolist() == [time in covered(pairs)]


@given(PAIRS, st.sets(st.integers(-5, 95)))
def test_cut_at_edges(pairs: list[tuple[int, int]], edges: set[int]) -> None:
    spans = make(pairs)
    times = np.array(sorted(edges), np.int64)
    pieces = cut(spans.starts, spans.ends, times)
    number = pieces.of_spans(np.arange(len(spans.starts)))
    expected = []
    for at, (start, end) in enumerate(spans.spans):
        stops = [start, *sorted(edge for edge in edges if start < edge < end), end]
        expected += [(at, *piece) for piece in pairwise(stops)]
    assert list(zip(number.tolist(), pieces.starts.tolist(), pieces.ends.tolist(), strict=True)) == expected
    assert pieces.begun(spans.starts, times).tolist() == pieces.starts.tolist()


@given(st.lists(st.integers(0, 90), min_size=2, unique=True), st.sets(st.integers(-5, 95)))
def test_cut_without_gaps(bounds: list[int], edges: set[int]) -> None:
    times = np.array(sorted(bounds), np.int64)
    pieces = cut(times[:-1], times[1:], np.array(sorted(edges), np.int64))
    expected = sorted({*bounds, *(edge for edge in edges if min(bounds) < edge < max(bounds))})
    assert [*pieces.starts.tolist(), int(pieces.ends[-1])] == expected
    assert np.shares_memory(pieces.starts[1:], pieces.ends) == (len(expected) > 2)
