"""Sets as ascending arrays, against Python's own sets; dense and sparse ones are worked out in different ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.trace.sets import (
    OCCURRENCES,
    among,
    common,
    distinct,
    first_of_each,
    numbered,
    order_by,
    united,
    without,
)

NUMBERS = st.lists(st.integers(-(1 << 62), 1 << 62) | st.integers(0, 5))


def rows(numbers: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


@given(NUMBERS)
def test_each_number_is_there_once_and_in_order(numbers: list[int]) -> None:
    assert distinct(rows(numbers)).tolist() == sorted(set(numbers))


@given(st.lists(st.integers(0, 30)), st.lists(st.integers(0, 40)))
def test_entries_that_equal_one_of_few_or_many_numbers(column: list[int], numbers: list[int]) -> None:
    assert among(rows(column), numbers).tolist() == [each in numbers for each in column]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint64])
def test_the_type_stays_also_at_its_ends(dtype: type[np.integer]) -> None:
    ends = np.iinfo(dtype)
    for numbers in ([], [ends.max, ends.min, ends.max], [ends.max - 1, ends.max], [ends.min, ends.min + 1, ends.min]):
        found = distinct(np.array(numbers, dtype))
        assert found.dtype == dtype
        assert found.tolist() == sorted(set(numbers))


@given(NUMBERS)
def test_each_number_knows_its_position_among_the_distinct_ones(numbers: list[int]) -> None:
    found, position = numbered(rows(numbers))
    assert found.tolist() == sorted(set(numbers))
    assert found[position].tolist() == numbers
    assert first_of_each(position, len(found)).tolist() == [numbers.index(number) for number in found.tolist()]


@given(st.lists(st.sampled_from([-(1 << 62), 0, 1 << 62]), min_size=3 * OCCURRENCES))
def test_few_numbers_far_apart_know_their_positions(numbers: list[int]) -> None:
    found, position = numbered(rows(numbers))
    assert found[position].tolist() == numbers


@given(NUMBERS, NUMBERS)
def test_two_sets(some: list[int], others: list[int]) -> None:
    one, other = rows(some), rows(others)
    assert united(one, other).tolist() == sorted({*some, *others})
    assert common(one, other).tolist() == sorted({*some} & {*others})
    assert without(one, other).tolist() == sorted({*some} - {*others})
    assert among(one, other).tolist() == [number in set(others) for number in some]


COLUMNS = st.integers(1, 4).flatmap(
    lambda keys: st.lists(st.tuples(*[st.integers(0, 6)] * keys), max_size=40).map(lambda rows: (keys, rows))
)


@given(COLUMNS, st.integers(0, 4))
def test_positions_in_the_order_of_several_keys(columns: tuple[int, list[tuple[int, ...]]], sorted_by: int) -> None:
    """Also of entries that are sorted by the first few keys already, as recordings are."""
    count, entries = columns
    entries = sorted(entries, key=lambda entry: entry[:sorted_by]) if sorted_by else entries
    keys = [rows([entry[at] for entry in entries]) for at in range(count)]
    assert order_by(*keys).tolist() == sorted(range(len(entries)), key=entries.__getitem__)
