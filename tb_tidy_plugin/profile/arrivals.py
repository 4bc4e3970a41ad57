"""Arrival times of ranks at the collectives of a run, by aligned clocks, with their errors.

Unlike `stragglers`, this module judges nothing: each collective has a rank that came last, on a balanced job a
different one each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.rank_summary import Operation
from tb_tidy_plugin.profile.run import GAUSSIAN, Meetings, Run
from tb_tidy_plugin.profile.stragglers import in_steady_steps, summed
from tb_tidy_plugin.trace.columns import Numbers
from tb_tidy_plugin.trace.sets import distinct

_NEARLY_ALL = 2  # standard deviations that contain 95 % of a normal distribution
FOREVER = 1 << 62


class Arrival(msgspec.Struct, frozen=True):
    """One rank at the collectives of the steps; times are means per step.

    Attributes:
        met: number of collectives that it took part in.
        last: number of them in which it came last.
        late_ns: lateness relative to the middle rank, over all collectives of a step; negative if it came earlier.
        waited_ns: time that each of the other ranks waited for it, on average.
        waits_ns: time that it waited for others.
    """

    met: int
    last: int
    late_ns: int
    waited_ns: int
    waits_ns: int


class CollectivePlace(msgspec.Struct, frozen=True):
    """The collectives that one place of the source begins with tensors of one size.

    Attributes:
        operation: their common properties.
        met: number of meetings.
        last_rank, last: the rank that came last most often, and how often.
        waited_ns: time that a rank waits in it per step, on average of all but the last.
    """

    operation: Operation
    met: int
    last_rank: int
    last: int
    waited_ns: int


def arrivals_of(run: Run) -> tuple[Arrival | None, ...]:
    """One entry per rank of the run, None for ranks that met no other in a step."""
    meetings = in_steady_steps(run.meetings)
    steps = max(len(distinct(meetings.step)), 1)
    last, waits = _last(meetings), meetings.waits_ns()
    waited = np.zeros_like(waits)
    waited[np.arange(len(last)), last] = waits.sum(axis=1)
    others = max(len(run.ranks) - 1, 1)
    columns = zip(
        meetings.there.sum(axis=0).tolist(),
        np.bincount(last, minlength=len(run.ranks)).tolist(),
        (summed(meetings, meetings.late_ns()).sum(axis=0) / steps).round().astype(np.int64).tolist(),
        (waited.sum(axis=0) // (others * steps)).tolist(),
        (waits.sum(axis=0) // steps).tolist(),
        strict=True,
    )
    return tuple(Arrival(*values) if values[0] else None for values in columns)


def meeting_places_of(run: Run) -> tuple[CollectivePlace, ...]:
    """Places at which ranks meet, longest waiting first."""
    meetings = in_steady_steps(run.meetings)
    steps = max(len(distinct(meetings.step)), 1)
    found = sorted(_places(run, meetings, steps), key=lambda place: -place.waited_ns)
    return tuple(found)


def _places(run: Run, meetings: Meetings, steps: int) -> Iterator[CollectivePlace]:
    last, waits = _last(meetings), meetings.waits_ns().sum(axis=1)
    lines: dict[Operation, list[int]] = {}
    for line, operation in enumerate(meetings.operations):
        lines.setdefault(operation, []).append(line)
    others = max(len(run.ranks) - 1, 1)
    for operation, mine in lines.items():
        (column, times), *_ = Counter(last[mine].tolist()).most_common(1)
        waited_ns = int(waits[mine].sum()) // (others * steps)
        yield CollectivePlace(operation, len(mine), run.ranks[column].rank, times, waited_ns)


def _last(meetings: Meetings) -> Numbers:
    """Column of the last rank in each meeting."""
    starts = np.where(meetings.there, meetings.start_ns, -FOREVER)
    columns: Numbers = starts.argmax(axis=1) if len(meetings) else np.empty(0, np.int64)
    return columns


def clock_errors_ns(run: Run) -> tuple[int | None, ...]:
    """Error of each of `Run.clocks_ns`; 0 for the first rank, None if the clock is unknown.

    Errors have two sources. Ends of one collective lie apart, as in `_spread`. And a rank could always leave
    collectives at another moment than the others: never before the last one came, so the last one's own time in the
    collective, by any clock, is an upper bound. The best of the rank's collectives counts.
    """
    meetings = run.meetings
    spread = _spread(np.where(meetings.there, meetings.end_ns, np.nan))
    took = np.where(meetings.there, meetings.end_ns - meetings.start_ns, FOREVER).min(axis=1, initial=FOREVER)
    best = np.where(meetings.there, took[:, None], FOREVER).min(axis=0, initial=FOREVER)
    apart = _NEARLY_ALL * np.hypot(spread, spread[:1])
    errors: list[int] = np.maximum(apart.round().astype(np.int64), best).tolist()
    known = frozenset(np.nonzero(meetings.there)[1].tolist())
    found = [error if column in known else None for column, error in enumerate(errors)]
    return (0, *found[1:]) if found else ()


def _spread(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation of each rank's ends around the middle rank's, from their median absolute deviation."""
    if not len(ends):
        return np.zeros(ends.shape[1])
    apart = np.abs(ends - np.nanmedian(ends, axis=1)[:, None])
    seen = ~np.isnan(apart).all(axis=0)
    spread = np.zeros(ends.shape[1])
    spread[seen] = GAUSSIAN * np.nanmedian(apart[:, seen], axis=0)
    return spread
