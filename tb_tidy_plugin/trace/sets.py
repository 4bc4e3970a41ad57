"""Sets of numbers as ascending arrays: rows, times, threads; and the order of rows.

`np.unique`, and functions based on it, use hashing: if nearly all numbers are distinct, as rows and times are, that
takes ten times as long as sorting. It also imports `numpy.ma`, a twentieth of the time of a whole `tb-tidy check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)
_Positions: TypeAlias = NDArray[np.int64]
_Integers: TypeAlias = NDArray[np.integer]
_Mask: TypeAlias = NDArray[np.bool_]

OCCURRENCES = 16
"""Numbers that occur this often, on average, are looked up among the distinct ones instead of sorted with them."""

FEW = 16
"""Up to this many numbers, comparing a column with each of them is faster than looking up each entry."""

DENSE = 4
"""Numbers whose range is at most this many times their count are marked in a mask instead of sorted."""


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The distinct `values`, ascending."""
    if not len(values):
        return values[:0]
    low, high = values.min(), values.max()
    if int(high) - int(low) <= DENSE * len(values):
        seen = np.zeros(int(high) - int(low) + 1, np.bool_)
        seen[values - low] = True
        found: NDArray[_Number] = np.flatnonzero(seen).astype(values.dtype) + low
        return found
    ordered = np.sort(values, kind="stable")  # recordings consist of sorted runs, which this sort uses
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def numbered(values: NDArray[_Number]) -> tuple[NDArray[_Number], _Positions]:
    """The distinct `values`, ascending, and the position of each value among them."""
    found = distinct(values)
    if not len(found):
        return found, np.empty(0, np.int64)
    if int(found[-1]) - int(found[0]) > DENSE * len(values):
        if len(found) * OCCURRENCES > len(values):
            return np.unique(values, return_inverse=True)
        return found, np.searchsorted(found, values)
    position = np.empty(int(found[-1]) - int(found[0]) + 1, np.int64)
    position[found - found[0]] = np.arange(len(found))
    return found, position[values - found[0]]


def first_of_each(number: _Integers, count: int) -> _Positions:
    """The first position of each number from 0 to `count` - 1, all of which are in `number`."""
    first = np.empty(count, np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)  # of several values for one place, the last one stays
    return first


def united(*rows: _Integers) -> _Positions:
    """Numbers in any of several sets."""
    joined: _Positions = np.concatenate(rows, dtype=np.int64)
    return distinct(joined)


def among(values: _Integers, wanted: _Integers | Sequence[int]) -> _Mask:
    """_Mask of `values`, of any shape, that are in `wanted`, in any order."""
    if not len(wanted):
        return np.zeros(values.shape, np.bool_)
    known = np.asarray(wanted)
    if len(known) <= FEW:
        found = np.zeros(values.shape, np.bool_)
        for number in known.tolist():
            found |= values == number
        return found
    if int(known.max()) - int(known.min()) <= DENSE * (values.size + len(known)):
        return np.isin(values, known, kind="table")
    known = distinct(known)
    there: _Mask = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return there


def common(some: _Integers, others: _Integers) -> _Positions:
    """Numbers in both sets, ascending."""
    return distinct(some[among(some, others)]).astype(np.int64, copy=False)


def without(some: _Integers, others: _Integers) -> _Positions:
    """Numbers in `some` that are not in `others`, ascending."""
    return distinct(some[~among(some, others)]).astype(np.int64, copy=False)


def order_by(*keys: NDArray[np.bool_ | np.integer]) -> _Positions:
    """The positions in the order of `keys`, the first one first; equal ones keep their order.

    Recordings are mostly sorted, apart from the order of threads and a few ties. Checking that takes a tenth of the
    time of sorting.
    """
    order: _Positions | None = None
    undecided: _Positions | None = None  # entries that equal the next one in all keys so far; None for all
    for at, unordered in enumerate(keys):
        key = unordered if order is None else unordered[order]
        if not at and (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key = key[order]
        one, other = (key[:-1], key[1:]) if undecided is None else (key[undecided], key[undecided + 1])
        if (other < one).any():
            return _with_ties_in_order(np.arange(len(key)) if order is None else order, undecided, keys[at:])
        equal = other == one
        if not equal.all():
            undecided = np.flatnonzero(equal) if undecided is None else undecided[equal]
    return np.arange(len(keys[0])) if order is None else order


def _with_ties_in_order(
    order: _Positions, undecided: _Positions | None, keys: Sequence[NDArray[np.bool_ | np.integer]]
) -> _Positions:
    """`order` with each run of entries that equal each other, as far as it is known, sorted by `keys`."""
    if undecided is None:
        return order[np.lexsort([key[order] for key in reversed(keys)])]
    is_tied = np.zeros(len(order), np.bool_)
    is_tied[undecided] = True
    begins = is_tied.copy()
    is_tied[undecided + 1] = True
    begins[undecided + 1] = False
    tied = np.flatnonzero(is_tied)
    rows, run = order[tied], np.cumsum(begins)[tied]
    order[tied] = rows[np.lexsort([*(key[rows] for key in reversed(keys)), run])]
    return order
