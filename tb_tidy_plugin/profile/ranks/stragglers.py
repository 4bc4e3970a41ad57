"""Arrival times of ranks at the collectives of a run, and ranks that the others wait for step after step.

Lateness is judged per step, since the collectives of one step depend on each other: a rank that is late to the first
bucket is late to those that began meanwhile. `straggler_of` judges; `arrivals_of` does not, because each collective has
a rank that came last, on a balanced job a different one each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.ranks.run import GAUSSIAN, Meetings, Run
from tb_tidy_plugin.profile.ranks.summary import Operation
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Numbers, Times
from tb_tidy_plugin.trace.sets import distinct
from tb_tidy_plugin.words.causes import Cause

CAP = 2
"""Limit of one step's weight, as a multiple of the middle one: an outlier is not a habit."""

AS_LATE = 0.5
"""Least part of the largest lateness for a rank to also count as late, as all ranks of a slow host are."""

CLOCK_ERRORS = 2
"""Least lateness in units of the clocks' error."""

_WAITS = frozenset(cause.word for cause in Cause if cause.doing is None)
"""Entries of the ledger in which a rank communicates or waits: never why it is late."""

_NEARLY_ALL = 2  # standard deviations that contain 95 % of a normal distribution
FOREVER = 1 << 62


class Straggler(msgspec.Struct, frozen=True):
    """Ranks that come late together, and their cost.

    Attributes:
        ranks: their numbers, ascending.
        others: number of ranks that wait for them.
        steps: number of examined steps.
        last_in: number of them in which one of these ranks was last by most time.
        late_ns: lateness of their last relative to the middle one of the others, on average of the steps.
        lost_ns: time that each of the others waits per step, on average.
        shared_ns: by how much a step would be shorter if the cause of these ranks' lateness over the last of the others
            were shared evenly among all.
        operation: the collective with the longest waits.
        extra_ns: entries of the ledger, by id, with the time per step that they take longer than the middle one of the
            others; largest first.
    """

    ranks: tuple[int, ...]
    others: int
    steps: int
    last_in: int
    late_ns: int
    lost_ns: int
    shared_ns: int
    operation: Operation
    extra_ns: Mapping[str, int]


def comparable_steps(run: Run) -> int:
    """Number of steps after the warm-up in which ranks meet."""
    return len(distinct(in_steady_steps(run.meetings).step))


def straggler_of(run: Run, *, steadiness: float) -> Straggler | None:
    """The ranks that come late steadily, None without any; never more than half of all.

    Args:
        run: must have at least two comparable steps.
        steadiness: least multiple of its standard error for a rank's lateness per step.
    """
    meetings = in_steady_steps(run.meetings)
    late = summed(meetings, meetings.late_ns())
    habit = _capped(late)
    error = habit.std(axis=0, ddof=1) / np.sqrt(len(habit))
    mean = habit.mean(axis=0)
    steady = (mean > 0) & (mean >= steadiness * error)
    if not steady.any():
        return None
    slow = steady & (mean >= AS_LATE * mean[steady].max())
    found = _straggler(run, meetings, slow, late)
    return found if found.late_ns >= CLOCK_ERRORS * run.clock_error_ns else None


def in_steady_steps(meetings: Meetings) -> Meetings:
    """The meetings of steps after the warm-up."""
    return meetings.take(np.flatnonzero(meetings.step != ABSENT))


def summed(meetings: Meetings, values: Times) -> Times:
    """The sum of the values of each step's collectives: one line per step."""
    steps, line = np.unique(meetings.step, return_inverse=True)
    sums = np.zeros((len(steps), *values.shape[1:]), np.int64)
    np.add.at(sums, line, values)
    return sums


def _capped(by_step: Times) -> Times:
    """Each column, with upward outliers limited."""
    capped: Times = np.minimum(by_step, np.maximum(CAP * np.median(by_step, axis=0), 0).astype(np.int64))
    return capped


def _straggler(run: Run, meetings: Meetings, slow: Mask, late: Times) -> Straggler:
    last, last_other = meetings.last_ns(slow), meetings.last_ns(~slow)
    theirs = (last > last_other) & (meetings.there & ~slow).any(axis=1)
    waits = np.where(theirs[:, None] & ~slow, meetings.waits_ns(), 0).sum(axis=1) // (~slow).sum()
    lost = summed(meetings, waits)
    saved = np.minimum(waits, np.where(theirs, last - last_other, 0))
    others = np.where(meetings.there & ~slow, meetings.start_ns, np.nan)[theirs]
    after = summed(
        meetings.take(np.flatnonzero(theirs)), (last[theirs] - np.nanmedian(others, axis=1)).astype(np.int64)
    )
    return Straggler(
        ranks=tuple(rank.rank for rank, is_slow in zip(run.ranks, slow.tolist(), strict=True) if is_slow),
        others=int((~slow).sum()),
        steps=len(late),
        last_in=int(slow[late.argmax(axis=1)].sum()),
        late_ns=round(float(_capped(after).mean())) if len(after) else 0,
        lost_ns=round(float(_capped(lost).mean())),
        shared_ns=round(float(_capped(summed(meetings, saved)).mean() * (~slow).mean())),
        operation=meetings.operations[int(waits.argmax())],
        extra_ns=_extra(run, slow),
    )


def _extra(run: Run, slow: Mask) -> dict[str, int]:
    entries = sorted({entry for rank in run.ranks for entry in rank.entries} - _WAITS)
    # One line per rank, one column per entry.
    times = np.array([[rank.entries.get(entry, 0) for entry in entries] for rank in run.ranks])
    times = times.reshape(len(slow), len(entries))
    more = np.median(times[slow], axis=0) - np.median(times[~slow], axis=0)
    found = {entry: round(by) for entry, by in zip(entries, more.tolist(), strict=True) if by > 0}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


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
