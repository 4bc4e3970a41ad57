"""Sets of time: unions, intersections and differences of intervals, in integer ns.

An interval set is a pair of sorted arrays (starts, ends) of disjoint intervals with `start < end`. Questions about all
lanes (threads, streams) are answered without a loop over lanes, since a recording may have any number of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.trace.columns import ABSENT, Ids, Rows, Times
from tb_tidy_plugin.trace.sets import distinct, order_by

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of start and end in ns."""


class Intervals(msgspec.Struct, frozen=True):
    """Disjoint intervals in ascending order; time covered twice counts once."""

    starts: Times
    ends: Times

    @classmethod
    def union(cls, starts: Times, ends: Times) -> Intervals:
        """The union of the given intervals; empty and negative ones are ignored."""
        real = ends > starts
        starts, ends = starts[real], ends[real]
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
        sums = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        at = np.searchsorted(self.starts, times, side="right")
        overshoot = np.zeros(len(times), np.int64)
        inside = at > 0
        overshoot[inside] = np.maximum(self.ends[at[inside] - 1] - times[inside], 0)
        return sums[at] - overshoot

    def within(self, starts: Times, ends: Times) -> Times:
        """Covered time inside each of the given windows, one entry per window."""
        return self.covered_before(ends) - self.covered_before(starts)

    def intersection(self, other: Intervals) -> Intervals:
        """Time that both cover."""
        # Both cover the time from the later of two starts to the earlier of two ends: pair each interval with all of
        # the
        # other set that overlap it.
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


def cut(starts: Times, ends: Times, edges: Times) -> tuple[Rows, Times, Times]:
    """The given spans (ascending, disjoint), cut at each of `edges` (ascending) that lies inside one of them.

    Returns the number of each piece's span, its start and its end.
    """
    at = np.searchsorted(starts, edges, side="right") - 1
    at, edges = at[at != ABSENT], edges[at != ABSENT]
    inside = (edges > starts[at]) & (edges < ends[at])
    at, edges = at[inside], edges[inside]
    span = np.repeat(np.arange(len(starts)), 1 + np.bincount(at, minlength=len(starts)))
    new_starts, new_ends = starts[span], ends[span]
    begun = at + np.arange(1, len(at) + 1)  # the piece that begins at each edge
    new_starts[begun], new_ends[begun - 1] = edges, edges
    return span, new_starts, new_ends


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
    count = len(lane)
    lanes, times = np.concatenate([lane, in_lane]), np.concatenate([start, at])
    order = np.lexsort((np.arange(len(lanes)) >= count, times, lanes))
    latest = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), ABSENT))
    places = np.flatnonzero(order >= count)
    found = np.where(latest[places] >= 0, order[latest[places]], ABSENT)
    rows = np.full(len(at), ABSENT, np.int64)
    rows[order[places] - count] = np.where(lanes[found] == lanes[order[places]], found, ABSENT)
    return rows
