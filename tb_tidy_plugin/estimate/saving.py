"""Savings with bounds and basis.

A saving of basis `bound` needs no replay. It is at most the time that the edited events cover together, per step; and
it is expected where the step waits for that time: for device work, and for the host while no device runs. Whether the
step really becomes shorter by that much depends on what else waits for what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tb_tidy_plugin.profile.critical import clipped_to_steps, critical_time, in_steps, per_step
from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Edit, Overlap, Scale, Unblock

Basis: TypeAlias = Literal["bound", "replayed", "measured"]

Lost: TypeAlias = Sequence[tuple[int, int]]
"""Time that a pattern costs where this is not the time of its events, as starts and ends in ns."""

Part: TypeAlias = tuple[Intervals, Intervals, float, float]
"""Time that the step waits for, all time that is edited, and what part of each is most likely and at most saved."""


@dataclass(frozen=True, slots=True)
class Saving:
    """Time saved per step, in ns, with `low_ns <= expected_ns <= high_ns`."""

    expected_ns: int
    low_ns: int
    high_ns: int
    basis: tuple[Basis, ...]


def bound(profile: Profile, edits: Sequence[Edit], lost: Lost | None = None) -> Saving:
    """The bound on what `edits` save together; `lost`, where given, is the time they touch instead of their events'.

    Time that several edits touch counts once. Nothing is certain to be saved, so `low_ns` is 0. Work that would run
    beside the rest of the step hides behind that rest: it is expected to save no more than the rest is long.
    """
    spans = None if lost is None else clipped_to_steps(profile, intervals_of(lost))
    expected = high = 0.0
    waited, touched = Intervals.none(), Intervals.none()
    for waits, touches, most_likely, most in _parts(profile, edits, spans):
        expected += per_step(profile, waits.minus(waited)) * most_likely
        high += per_step(profile, touches.minus(touched)) * most
        waited, touched = waited.plus(waits), touched.plus(touches)
    return Saving(round(min(expected, high)), 0, round(high), ("bound",))


def intervals_of(spans: Lost) -> Intervals:
    """The time that spans of start and end cover together."""
    edges = np.array(spans, np.int64).reshape(-1, 2)
    return Intervals.union(edges[:, 0], edges[:, 1])


def _parts(profile: Profile, edits: Sequence[Edit], spans: Intervals | None) -> Iterator[Part]:
    """One part per kind of edit: what goes wholly first, so that nothing of it is counted again."""
    for (most_likely, most), events in _by_fractions(profile, edits, spans).items():
        rows = in_steps(profile, np.array(events, np.int64))
        waits = critical_time(profile, rows) if spans is None else spans
        plain = Intervals.union(profile.table.start_ns[rows], profile.table.end_ns[rows])
        yield waits, plain.plus(waits) if spans is None else spans, most_likely, most


def _by_fractions(
    profile: Profile, edits: Iterable[Edit], spans: Intervals | None
) -> dict[tuple[float, float], list[int]]:
    """Events by what of their time is most likely and at most saved, the largest first."""
    found: dict[tuple[float, float], list[int]] = {}
    beside = [row for edit in edits if isinstance(edit, Overlap) for row in edit.events]
    for edit in edits:
        match edit:
            case Scale(events, factor, low, _):
                found.setdefault((1 - factor, 1 - low), []).extend(events)
            case Overlap(events):
                found.setdefault((_hidden(profile, beside, spans), 1.0), []).extend(events)
            case Unblock(event):
                found.setdefault((1.0, 1.0), []).append(event)
            case _:
                found.setdefault((1.0, 1.0), []).extend(edit.events)
    return dict(sorted(found.items(), reverse=True))


def _hidden(profile: Profile, beside: Sequence[int], spans: Intervals | None) -> float:
    """What part of work that runs beside the step can hide behind the rest of it."""
    rows = in_steps(profile, np.array(beside, np.int64))
    time_ns = per_step(profile, critical_time(profile, rows) if spans is None else spans)
    rest_ns = max((profile.steps.median_ns or time_ns) - time_ns, 0)
    return min(rest_ns / time_ns, 1.0) if time_ns else 0.0
