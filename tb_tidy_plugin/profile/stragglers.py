"""Ranks that the others wait for: step after step, not now and then.

Lateness is judged per step, since the collectives of one step depend on each other: a rank that is late to the first
bucket is late to those that began meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from tb_tidy_plugin.profile.rank_summary import Operation
from tb_tidy_plugin.profile.run import Meetings, Run
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Times
from tb_tidy_plugin.trace.sets import distinct

CAP = 2
"""Limit of one step's weight, as a multiple of the middle one: an outlier is not a habit."""

AS_LATE = 0.5
"""Least part of the largest lateness for a rank to also count as late, as all ranks of a slow host are."""

CLOCK_ERRORS = 2
"""Least lateness in units of the clocks' error."""

_WAITS = frozenset(
    {"communication", "host_communication", "stream_wait", "synchronisation", "queued_unknown"}
    | {"unrecorded_launch", "unrecorded_wait"}
)
"""Entries of the ledger in which a rank communicates or waits: never why it is late."""


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
