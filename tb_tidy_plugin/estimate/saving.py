"""Savings with bounds and basis.

A saving of basis `bound` is the plain upper bound: at most the time that the edited events cover together, per step.
Whether the step really becomes shorter by that much depends on what else waits for what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Edit, Overlap, Remove, Rows, Scale, Unblock

Basis: TypeAlias = Literal["bound", "replayed", "measured"]


@dataclass(frozen=True, slots=True)
class Saving:
    """Time saved per step, in ns, with `low_ns <= expected_ns <= high_ns`."""

    expected_ns: int
    low_ns: int
    high_ns: int
    basis: tuple[Basis, ...]


def bound(profile: Profile, edits: Sequence[Edit]) -> Saving:
    """The bound on what `edits` save together.

    Time that several edits touch counts once. Nothing is certain to be saved, so `low_ns` is 0. Work that would run
    beside the rest of the step hides behind that rest: it is expected to save no more than the rest is long.
    """
    taken = _rows([edit for edit in edits if isinstance(edit, Remove | Unblock)])
    expected = high = float(profile.per_step_ns(taken))
    for events, most_likely, most in (*_overlaps(profile, edits), *_scales(edits)):
        with_them = np.concatenate([taken, events])
        gained = profile.per_step_ns(with_them) - profile.per_step_ns(taken)
        expected += gained * most_likely
        high += gained * most
        taken = with_them
    return Saving(round(expected), 0, round(high), ("bound",))


Part: TypeAlias = tuple[Rows, float, float]
"""Events, and the parts of their time that are most likely and at most saved."""


def _overlaps(profile: Profile, edits: Sequence[Edit]) -> Iterator[Part]:
    events = _rows([edit for edit in edits if isinstance(edit, Overlap)])
    time_ns = profile.per_step_ns(events)
    if time_ns:
        rest_ns = max((profile.steps.median_ns or time_ns) - time_ns, 0)
        yield events, min(rest_ns / time_ns, 1.0), 1.0


def _scales(edits: Sequence[Edit]) -> Iterator[Part]:
    by_factor: dict[tuple[float, float], list[int]] = {}
    for edit in edits:
        if isinstance(edit, Scale):
            by_factor.setdefault((edit.factor, edit.low), []).extend(edit.events)
    for (factor, low), events in by_factor.items():
        yield np.array(events, np.int64), 1 - factor, 1 - low


def _rows(edits: Sequence[Edit]) -> Rows:
    events = [row for edit in edits for row in _events(edit)]
    return np.array(events, np.int64)


def _events(edit: Edit) -> tuple[int, ...]:
    return (edit.event,) if isinstance(edit, Unblock) else edit.events
