"""Calls of one body that repeat: equal functions and operators on equal shapes, one group after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tb_tidy_plugin.profile.events.calls import Loop
from tb_tidy_plugin.profile.events.inputs import signatures_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT, Numbers, Rows
from tb_tidy_plugin.trace.sets import among, distinct

Hashes = npt.NDArray[np.uint64]

MOST_CALLS = 64
"""Most calls of its body in a group, including those that they make."""

FACTOR, SPREAD = 0x100000001B3, 0x9E3779B97F4A7C15
INVERSE = pow(FACTOR, -1, 1 << 64)


def repeats(profile: Profile, least: int, is_own: Callable[[str], bool | None]) -> Iterator[Loop]:
    """Runs of at least `least` equal groups in bodies of the user's own functions; of overlapping ones the longest.

    `is_own` says by name whether a function is the user's own code, None if the name is not a function.
    """
    rows = _own_calls(profile, is_own)
    bodies, kinds = profile.calls.body[rows], _kinds(profile, rows)
    distance = _to_the_next(kinds, bodies)
    at = np.flatnonzero((distance > 0) & (distance <= MOST_CALLS))
    pairs, counts = np.unique(bodies[at].astype(np.int64) * (MOST_CALLS + 1) + distance[at], return_counts=True)
    often, periods = np.divmod(pairs[counts >= least - 1], MOST_CALLS + 1)
    spans = np.stack([np.searchsorted(bodies, often, "left"), np.searchsorted(bodies, often, "right"), periods], axis=1)
    found: list[tuple[int, int, int]] = []
    for first, end, period in spans.tolist():
        found += [(count * period, period, first + at) for at, count in _runs(kinds[first:end], period, least)]
    is_taken = np.zeros(len(rows), np.bool_)
    for length, period, first in sorted(found, key=lambda run: (-run[0], run[1])):
        span = slice(first, first + length)
        if not is_taken[span].any():
            is_taken[span] = True
            groups = rows[span].reshape(-1, period).tolist()
            yield Loop(tuple(map(tuple, groups)), ((tuple(map(profile.name, groups[0])), len(groups)),))


def _own_calls(profile: Profile, is_own: Callable[[str], bool | None]) -> Rows:
    """The calls that the user's own functions made, body by body."""
    calls, table = profile.calls, profile.table
    caller = calls.caller[calls.rows[calls.bounds[:-1]]]  # the same for all calls of a body
    names = distinct(table.name[caller[caller != ABSENT]])
    own = names[[bool(is_own(table.names[name])) for name in names.tolist()]]
    is_own_body = (caller != ABSENT) & among(table.name[caller], own)
    rows: Rows = calls.rows[np.repeat(is_own_body, np.diff(calls.bounds))]
    return rows


def _runs(kinds: Hashes, period: int, least: int) -> Iterator[tuple[int, int]]:
    """Positions at which at least `least` groups of `period` calls repeat, and the number of groups."""
    differs = np.ones(len(kinds) - period + 2, np.bool_)
    np.not_equal(kinds[:-period], kinds[period:], out=differs[1:-1])
    ends = np.flatnonzero(differs)
    begins, counts = ends[:-1], (np.diff(ends) - 1) // period + 1
    yield from zip(begins[counts >= least].tolist(), counts[counts >= least].tolist(), strict=True)


def _to_the_next(kinds: Hashes, bodies: Numbers) -> Rows:
    """Distance from each call to the next one of its kind in its body, 0 if there is none."""
    order = np.lexsort((kinds, bodies))  # stable: equal ones keep their order
    follows = (kinds[order[1:]] == kinds[order[:-1]]) & (np.diff(bodies[order]) == 0)
    distance = np.zeros(len(kinds), np.int64)
    distance[order[:-1][follows]] = np.diff(order)[follows]
    return distance


def _kinds(profile: Profile, rows: Rows) -> Hashes:
    """A hash for each of the calls: the same for equal names that run equal operators on equal shapes."""
    calls, table, last = profile.calls, profile.table, profile.tree.last_descendant
    operators = np.flatnonzero(calls.outermost)
    signatures = signatures_of(table, operators, profile.distinct_inputs)
    shapes = signatures.shape_number[signatures.number].astype(np.uint64)
    with np.errstate(over="ignore"):
        one = (table.name[operators].astype(np.uint64) * np.uint64(SPREAD)) ^ (shapes * np.uint64(FACTOR))
        power = _powers(FACTOR, len(operators))
        sums = np.append(np.uint64(0), np.cumsum(one * power[:-1]))
        begin, end = calls.operators_before[rows], calls.operators_before[last[rows] + 1]
        below = (sums[end] - sums[begin]) * _powers(INVERSE, len(operators))[begin]
        kinds: Hashes = below * np.uint64(FACTOR) + table.name[rows].astype(np.uint64)
    return kinds


def _powers(factor: int, count: int) -> Hashes:
    """`factor` to the power of 0, 1, …, `count`."""
    power = np.full(count + 1, factor, np.uint64)
    power[0] = 1
    return np.cumprod(power, dtype=np.uint64)
