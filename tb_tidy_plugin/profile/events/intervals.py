"""Sets of time: unions, intersections and differences of intervals, in integer ns.

An interval set is a pair of sorted arrays (starts, ends) of disjoint intervals with `start < end`. Questions about all
lanes (threads, streams) are answered without a loop over lanes, since a recording may have any number of them. Two
loops exist twice: with numpy, and compiled (`_nest.pyx`) if a compiler was present at installation.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.system.compiled import is_usable
from tb_tidy_plugin.trace.columns import ABSENT, EventTable, Ids, Mask, Rows, Times, blocks_of
from tb_tidy_plugin.trace.sets import distinct, order_by

IS_COMPILED = is_usable("tb_tidy_plugin.profile._nest")
if IS_COMPILED:
    from tb_tidy_plugin.profile._nest import cover, unite

_Scalar = TypeVar("_Scalar", bound=np.generic)
_LONG_AGO = -(1 << 62)

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of start and end in ns."""


class Intervals(msgspec.Struct, frozen=True):
    """Disjoint intervals in ascending order; time covered twice counts once."""

    starts: Times
    ends: Times

    @classmethod
    def union(cls, starts: Times, ends: Times) -> Intervals:
        """The union of the given intervals; empty and negative ones are ignored."""
        if IS_COMPILED and starts.dtype == ends.dtype == np.int64:
            return cls(*_united(starts, ends))
        real = ends > starts
        if not real.all():
            starts, ends = starts[real], ends[real]
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, ends = starts[order], ends[order]
        if not len(starts):
            return cls(starts, ends)
        reach = np.maximum.accumulate(ends)
        first = np.concatenate([[True], starts[1:] > reach[:-1]])
        last = np.concatenate([first[1:], [True]])
        return cls(starts[first], reach[last])

    @classmethod
    def none(cls) -> Intervals:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def total_ns(self) -> int:
        """Covered time."""
        return int((self.ends - self.starts).sum())

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Start and end of each interval."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    @property
    def edges(self) -> Times:
        """Starts and ends in turn, ascending: for `cut`."""
        return np.stack([self.starts, self.ends], axis=1).reshape(-1)

    def covered_before(self, times: Times) -> Times:
        """Covered time before each of `times`."""
        if IS_COMPILED and times.dtype == self.starts.dtype == self.ends.dtype == np.int64:
            found_ns = np.empty(len(times), np.int64)
            if cover(self.starts, self.ends, times, found_ns):
                return found_ns
        sums = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        found = np.empty(len(times), np.int64)
        for block in blocks_of(len(times)):
            found[block] = self._covered_before(times[block], sums)
        return found

    def _covered_before(self, times: Times, sums: Times) -> Times:
        ends = np.append(_LONG_AGO, self.ends)
        if (times[1:] >= times[:-1]).all():
            first = np.searchsorted(times, self.starts)
            count = np.diff(first, prepend=0, append=len(times))
            sums, ends = np.repeat(sums, count), np.repeat(ends, count)
        else:
            at = np.searchsorted(self.starts, times, side="right")
            sums, ends = sums[at], ends[at]
        return sums - np.maximum(ends - times, 0)

    def within(self, starts: Times, ends: Times) -> Times:
        """Covered time inside each of the given windows, one entry per window."""
        if len(starts) > 1 and (starts[1:] == ends[:-1]).all():
            return np.diff(self.covered_before(np.append(starts, ends[-1:])))
        return self.covered_before(ends) - self.covered_before(starts)

    def intersection(self, other: Intervals) -> Intervals:
        """Time that both cover."""
        # Both cover the time from the later of two starts to the earlier of two ends: pair each interval with all of
        # the other set that overlap it.
        first = np.searchsorted(other.ends, self.starts, side="right")
        count = np.maximum(np.searchsorted(other.starts, self.ends, side="left") - first, 0)
        mine = np.repeat(np.arange(len(self.starts)), count)
        theirs = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
        return Intervals(
            np.maximum(self.starts[mine], other.starts[theirs]), np.minimum(self.ends[mine], other.ends[theirs])
        )

    def minus(self, other: Intervals) -> Intervals:
        """Time that this covers and `other` does not."""
        if not len(self.starts) or not len(other.starts):
            return self
        edge = np.iinfo(np.int64)
        gaps = Intervals(np.concatenate([[edge.min], other.ends]), np.concatenate([other.starts, [edge.max]]))
        return self.intersection(gaps)

    def plus(self, other: Intervals) -> Intervals:
        """Time that either covers."""
        return Intervals.union(np.concatenate([self.starts, other.starts]), np.concatenate([self.ends, other.ends]))

    def containing(self, times: Times) -> NDArray[np.bool_]:
        """Mask of covered `times`; an interval's end is not covered."""
        at = np.searchsorted(self.starts, times, side="right") - 1
        return (at >= 0) & (times < self.ends[at]) if len(self.starts) else np.zeros(len(times), np.bool_)

    def overlap_ns(self, other: Intervals) -> int:
        """Duration of the time that both cover."""
        return int(self.within(other.starts, other.ends).sum())


def covered(table: EventTable, rows: Mask | Ids) -> Intervals:
    """The time that `rows` cover together."""
    return Intervals.union(table.start_ns[rows], table.end_ns[rows])


def _united(starts: Times, ends: Times) -> tuple[Times, Times]:
    first, last = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    count = unite(starts, ends, first, last)
    if count == ABSENT:
        order = np.argsort(starts, kind="stable")
        count = unite(starts[order], ends[order], first, last)
    return first[:count].copy(), last[:count].copy()


class Pieces(msgspec.Struct, frozen=True):
    """Spans that were cut at edges; where they follow each other without gaps, starts and ends are parts of one array.

    Attributes:
        starts, ends: of each piece.
        first: the first piece of each span.
        edges: positions of the edges at which all other pieces begin.
    """

    starts: Times
    ends: Times
    first: Rows
    edges: Rows | slice

    def of_spans(self, column: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """For each piece what `column` has for its span. Of one value again and again, so is what comes back."""
        if len(column) and column.strides == (0,):
            return np.broadcast_to(column[0], len(self.starts))
        return np.repeat(column, np.diff(self.first, append=len(self.starts)))

    def begun(self, firsts: NDArray[_Scalar], others: NDArray[_Scalar]) -> NDArray[_Scalar]:
        """For the first piece of each span what `firsts` has for the span, else what `others` has for the edge."""
        is_other = np.ones(len(self.starts), np.bool_)
        is_other[self.first] = False
        found = np.empty(len(self.starts), firsts.dtype)
        found[self.first], found[is_other] = firsts, others[self.edges]
        return found


def cut(starts: Times, ends: Times, edges: Times) -> Pieces:
    """The given spans (ascending, disjoint), cut at each of `edges` (ascending) that lies inside one of them."""
    low = np.searchsorted(edges, starts, side="right")
    count = np.maximum(np.searchsorted(edges, ends) - low, 0)
    before = np.cumsum(count) - count
    first, total = np.arange(len(starts)) + before, int(count.sum())
    low = low[count > 0]
    inside: Rows | slice = slice(0)
    if total:
        is_run = int(low[-1] + count[count > 0][-1] - low[0]) == total
        inside = (
            slice(low[0], low[0] + total)
            if is_run
            else np.arange(total) + np.repeat(low - before[count > 0], count[count > 0])
        )
    bounds = np.empty(len(starts) + total + 1, np.int64)
    pieces = Pieces(bounds[:-1], bounds[1:], first, inside)
    if not len(starts):
        return pieces
    bounds[:-1], bounds[-1] = pieces.begun(starts, edges), ends[-1]
    if (starts[1:] == ends[:-1]).all():
        return pieces
    ended = bounds[1:].copy()
    ended[np.append(first[1:], len(ended)) - 1] = ends
    return Pieces(bounds[:-1], ended, first, inside)


def positions_of_each(values: Ids) -> list[Rows]:
    """The positions of each distinct value, ascending; in the order of the values."""
    order = np.argsort(values, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(values[order])) + 1).tolist(), len(order)]
    return [order[first:last] for first, last in pairwise(bounds)] if len(order) else []


def union_by_lane(lane: Ids, starts: Times, ends: Times) -> tuple[Ids, Times, Times]:
    """The union of each lane's intervals: lane, start and end of each piece, lane after lane."""
    if len(lane) and (lane == lane[0]).all():
        union = Intervals.union(starts, ends)
        return np.full(len(union.starts), lane[0]), union.starts, union.ends
    real = np.flatnonzero(ends > starts)
    order = real[order_by(lane[real], starts[real])]
    lane, starts, ends = lane[order], starts[order], ends[order]
    # Ends by rank, sorted by lane first: then the ends of one lane lie below the start of the next one.
    times = distinct(ends)
    base = np.cumsum(np.diff(lane, prepend=lane[:1]) != 0) * (len(times) + 1)
    reach = times[np.maximum.accumulate(base + np.searchsorted(times, ends)) - base]
    first = np.ones(len(order), np.bool_)
    first[1:] = (lane[1:] != lane[:-1]) | (starts[1:] > reach[:-1])
    last = np.append(first[1:], np.ones(min(len(order), 1), np.bool_))
    return lane[first], starts[first], reach[last]


def last_begun(lane: Ids, start: Times, in_lane: Ids, at: Times) -> Rows:
    """The last event (`lane`, `start`) that has begun at each place in a lane; `ABSENT` for none.

    Of several with the same start, it is the last one.
    """
    order = np.lexsort((start, lane))
    lanes, starts = lane[order], start[order]
    rows = np.full(len(at), ABSENT, np.int64)
    for each in distinct(lanes).tolist():
        low, high = np.searchsorted(lanes, (each, each + 1)).tolist()
        mine = np.flatnonzero(in_lane == each)
        found = np.searchsorted(starts[low:high], at[mine], side="right") - 1
        rows[mine] = np.where(found >= 0, order[low:high][found], ABSENT)
    return rows
