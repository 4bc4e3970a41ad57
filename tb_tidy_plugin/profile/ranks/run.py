"""Run: several ranks' recordings of the same steps.

Ranks meet in collectives: none can end before the last one has begun, and all end together. So the ends show how far
the clocks of two ranks are apart, and the starts, with clocks aligned, which rank the others wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.ranks.summary import Operation, RankSummary
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Rows, Times

ENDS_TOGETHER = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Collectives that no rank can leave before all have come; a broadcast's source, for example, need not wait."""

_LONG_AGO = -(1 << 62)
GAUSSIAN = 1.4826  # standard deviation of a normal distribution in units of its median absolute deviation


class Meetings(msgspec.Struct, frozen=True):
    """Collectives that at least two ranks recorded, in order of time: one line per collective, one column per rank.

    All times are in the clock of the run's first rank, relative to its `origin_ns`.

    Attributes:
        step: number of the step in `Run.steps`, `ABSENT` outside all steps.
        operations: as the first present rank recorded them.
        there: True for ranks that recorded it; the other columns are meaningless for other ranks.
    """

    step: Rows
    operations: tuple[Operation, ...]
    there: Mask
    start_ns: Times
    end_ns: Times
    exposed_ns: Times

    def __len__(self) -> int:
        return len(self.step)

    def take(self, lines: Rows) -> Meetings:
        operations = tuple(self.operations[line] for line in lines.tolist())
        columns = (self.start_ns[lines], self.end_ns[lines], self.exposed_ns[lines])
        return Meetings(self.step[lines], operations, self.there[lines], *columns)

    def last_ns(self, ranks: Mask) -> Times:
        """Start of the last of `ranks` in each; long before everything if none of them is there."""
        last: Times = np.where(self.there & ranks, self.start_ns, _LONG_AGO).max(axis=1, initial=_LONG_AGO)
        return last

    def late_ns(self) -> Times:
        """Lateness of each rank relative to the middle one of all, negative if it came earlier; 0 if it was not there.

        With an even number of ranks the middle is half way between the middle two.
        """
        middle = np.nanmedian(np.where(self.there, self.start_ns, np.nan), axis=1) if len(self) else np.empty(0)
        return np.where(self.there, self.start_ns - middle[:, None], 0).round().astype(np.int64)

    def waits_ns(self) -> Times:
        """Time that each rank waited in each collective for the last one, while it did nothing else.

        Collectives may overlap, as those of several buckets do: waiting at the same time counts once, in the first.
        """
        last = self.last_ns(np.ones(self.there.shape[1], np.bool_))
        counted = np.maximum.accumulate(np.append(_LONG_AGO, last))[:-1]
        since = np.maximum(self.start_ns, counted[:, None])
        waits = np.minimum(last[:, None], self.end_ns) - since
        return np.where(self.there, np.clip(waits, 0, np.maximum(self.exposed_ns, 0)), 0)


class Run:
    """Queries on several ranks of one job that recorded the same steps."""

    def __init__(self, ranks: Sequence[RankSummary]) -> None:
        self.ranks = tuple(sorted(ranks, key=lambda rank: rank.rank))

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps that at least two ranks recorded and that were not warm-up on any of them."""
        count = Counter(step.name for rank in self.ranks for step in rank.steps)
        warmup = {step.name for rank in self.ranks for step in rank.steps if step.warmup}
        return tuple(name for name, ranks in count.items() if ranks > 1 and name not in warmup)

    @cached_property
    def step_ns(self) -> int:
        """Median duration of these steps over all ranks; 0 without any."""
        wanted = frozenset(self.steps)
        durations = [step.duration_ns for rank in self.ranks for step in rank.steps if step.name in wanted]
        return round(float(np.median(durations))) if durations else 0

    @cached_property
    def clocks_ns(self) -> tuple[int | None, ...]:
        """Lead of each rank's clock over the first rank's; None for ranks that meet none of the others."""
        origin = self.ranks[0].origin_ns if self.ranks else 0
        ahead = zip(self.ranks, self._shifts, strict=True)
        return tuple(None if np.isnan(by) else round(by) + rank.origin_ns - origin for rank, by in ahead)

    @cached_property
    def clock_error_ns(self) -> int:
        """Usual distance of the ends of one collective on aligned clocks."""
        ends = self._recorded.end_ns - self._shifts
        ends = np.where(self._recorded.there, ends, np.nan)[self._together]
        if not ends.size or np.isnan(ends).all():
            return 0
        apart = np.abs(ends - _medians(ends)[:, None])
        return round(GAUSSIAN * float(np.nanmedian(apart)))

    @cached_property
    def meetings(self) -> Meetings:
        """The collectives that show who waits for whom: their ranks end together, and none ends before all have come.

        Entries that contradict this are not a meeting, but similar collectives of different groups.
        """
        found, shifts = self._recorded, np.nan_to_num(self._shifts).round().astype(np.int64)
        there = found.there & ~np.isnan(self._shifts)
        start, end = found.start_ns - shifts, found.end_ns - shifts
        last = np.where(there, start, _LONG_AGO).max(axis=1, initial=_LONG_AGO)
        first_out = np.where(there, end, -_LONG_AGO).min(axis=1, initial=-_LONG_AGO)
        real = self._together & (there.sum(axis=1) > 1) & (last <= first_out + self.clock_error_ns)
        lines = np.flatnonzero(real)
        lines = lines[np.argsort(last[lines], kind="stable")]
        return Meetings(
            found.step[lines],
            tuple(found.operations[line] for line in lines.tolist()),
            there[lines],
            start[lines],
            end[lines],
            found.exposed_ns[lines],
        )

    @cached_property
    def _together(self) -> Mask:
        kinds = np.array([operation.kind in ENDS_TOGETHER for operation in self._recorded.operations], np.bool_)
        met: Mask = kinds & (self._recorded.there.sum(axis=1) > 1)
        return met

    @cached_property
    def _recorded(self) -> Meetings:
        """All collectives, matched by step, kind, group and position in the step; each rank in its own clock."""
        lines: dict[tuple[str, str, str, int], int] = {}
        operations: list[Operation] = []
        cells: list[tuple[int, int, int, int, int]] = []
        for column, rank in enumerate(self.ranks):
            for key, operation, start_ns, end_ns, exposed_ns in _entries(rank):
                line = lines.setdefault(key, len(lines))
                if line == len(operations):
                    operations.append(operation)
                cells.append((line, column, start_ns, end_ns, exposed_ns))
        line_of, rank_of, *times = np.array(cells, np.int64).reshape(-1, 5).T
        there = np.zeros((len(lines), len(self.ranks)), np.bool_)
        tables = [np.zeros(there.shape, np.int64) for _ in times]
        there[line_of, rank_of] = True
        for table, values in zip(tables, times, strict=True):
            table[line_of, rank_of] = values
        numbers = {name: number for number, name in enumerate(self.steps)}
        steps = np.array([numbers.get(step, ABSENT) for step, *_ in lines], np.int64)
        return Meetings(steps, tuple(operations), there, *tables)

    @cached_property
    def _shifts(self) -> NDArray[np.float64]:
        """Subtrahend that converts each rank's times to the first rank's clock, NaN if unknown.

        From rank to rank along the collectives that they share, by the median difference of their ends; then again by
        the median of all.
        """
        there = self._recorded.there & self._together[:, None]
        ends = np.where(there, self._recorded.end_ns, np.nan)
        shifts = np.full(len(self.ranks), np.nan)
        shifts[:1] = 0.0
        while True:
            found = _later_by(ends, _medians(ends - shifts))
            fresh = np.isnan(shifts) & ~np.isnan(found)
            if not fresh.any():
                break
            shifts[fresh] = found[fresh]
        found = _later_by(ends, _medians(ends - shifts))
        shifts = np.where(np.isnan(found), shifts, found)
        set_right: NDArray[np.float64] = shifts - shifts[:1]
        return set_right


def _entries(rank: RankSummary) -> Iterator[tuple[tuple[str, str, str, int], Operation, int, int, int]]:
    """The key of each collective among those of its rank, the operation, start, end and exposed time."""
    names = [*(step.name for step in rank.steps), ""]  # the last one for collectives outside all steps
    all_of = rank.collectives
    places = zip(all_of.operation, all_of.step, all_of.position, strict=True)
    times = zip(all_of.start_ns, all_of.end_ns, all_of.exposed_ns, strict=True)
    for (number, step, position), (start_ns, end_ns, exposed_ns) in zip(places, times, strict=True):
        operation = rank.operations[number]
        yield (names[step], operation.kind, operation.group, position), operation, start_ns, end_ns, exposed_ns


def _medians(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each line, NaN for empty ones."""
    medians = np.full(len(table), np.nan)
    some = ~np.isnan(table).all(axis=1)
    medians[some] = np.nanmedian(table[some], axis=1)
    return medians


def _later_by(ends: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of each column minus `reference`."""
    later: NDArray[np.float64] = (ends - reference[:, None]).T
    return _medians(later)
