"""Savings with bounds and basis.

A saving of basis `bound` is the plain upper bound: at most the time that the edited events cover together, per step.
Whether the step really becomes shorter by that much depends on what else waits for what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.rulekit import Edit, Rows, Scale, Unblock

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

    Time that several edits touch counts once. Nothing is certain to be saved, so `low_ns` is 0.
    """
    whole = _rows([edit for edit in edits if not isinstance(edit, Scale)])
    expected = high = float(profile.per_step_ns(whole))
    scaled: dict[tuple[float, float], list[int]] = {}
    for edit in edits:
        if isinstance(edit, Scale):
            scaled.setdefault((edit.factor, edit.low), []).extend(edit.events)
    for (factor, low), events in scaled.items():
        with_it = np.concatenate([whole, np.array(events, np.int64)])
        gained = profile.per_step_ns(with_it) - profile.per_step_ns(whole)
        expected += gained * (1 - factor)
        high += gained * (1 - low)
        whole = with_it
    return Saving(round(expected), 0, round(high), ("bound",))


def _rows(edits: Sequence[Edit]) -> Rows:
    events = [row for edit in edits for row in _events(edit)]
    return np.array(events, np.int64)


def _events(edit: Edit) -> tuple[int, ...]:
    return (edit.event,) if isinstance(edit, Unblock) else edit.events
