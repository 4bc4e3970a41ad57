"""Sets of time: unions, intersections and differences of intervals, in integer ns.

An interval set is a pair of sorted arrays (starts, ends) of disjoint intervals with `start < end`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.trace.columns import Times


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint intervals in ascending order; time covered twice counts once."""

    starts: Times
    ends: Times

    @classmethod
    def union(cls, starts: Times, ends: Times) -> Intervals:
        """What the given intervals cover together; empty and negative ones cover nothing."""
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

    @property
    def total_ns(self) -> int:
        """Time covered."""
        return int((self.ends - self.starts).sum())

    def covered_before(self, times: Times) -> Times:
        """Time covered before each of `times`."""
        sums = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        at = np.searchsorted(self.starts, times, side="right")
        overshoot = np.zeros(len(times), np.int64)
        inside = at > 0
        overshoot[inside] = np.maximum(self.ends[at[inside] - 1] - times[inside], 0)
        return sums[at] - overshoot

    def within(self, starts: Times, ends: Times) -> Times:
        """Time covered inside each of the given windows, one entry per window."""
        return self.covered_before(ends) - self.covered_before(starts)

    def overlap_ns(self, other: Intervals) -> int:
        """Time covered by both."""
        return int(self.within(other.starts, other.ends).sum())
