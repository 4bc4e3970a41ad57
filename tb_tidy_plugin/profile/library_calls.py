"""Calls of library functions in steps, found by the names of their Python frames."""

from __future__ import annotations

import msgspec

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps import UNMARKED
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.words.units import Nanoseconds, times

_HALF = 0.5
_FEWEST = 2  # with fewer steps, nothing is usual


def calls_in_steps(profile: Profile, pattern: str) -> Rows:
    """Frames in marked steps whose name the pattern matches, without nested ones, in row order."""
    rows = profile.matching(pattern, Category.PYTHON)
    rows = rows[profile.step_of(rows) != ABSENT] if profile.steps.basis not in UNMARKED else rows[:0]
    outermost: Rows = rows[~profile.inside(rows)[rows]]
    return outermost


def usual_calls(profile: Profile, pattern: str) -> Rows:
    """The same frames if at least half of two or more steps hold one, else none: rarer calls are deliberate."""
    rows = calls_in_steps(profile, pattern)
    steps = len(profile.steps.items)
    is_usual = steps >= _FEWEST and len(set(profile.step_of(rows).tolist())) >= _HALF * steps
    return rows if is_usual else rows[:0]


class WaitingCalls(msgspec.Struct, frozen=True):
    """Evidence of calls in which the host waits.

    Attributes:
        per_step: number of calls per step. held: time that the host waits in them per step.
    """

    per_step: float
    held: Nanoseconds

    @property
    def times(self) -> str:
        """Number of calls in words."""
        return times(self.per_step)


def waiting_calls(profile: Profile, rows: Rows, least_ns: float) -> WaitingCalls | None:
    """The evidence of these calls; None if they hold the host for less than `least_ns` per step."""
    held_ns = profile.per_step_ns(rows)
    if held_ns < least_ns:
        return None
    return WaitingCalls(profile.per_step_count(rows), Nanoseconds(held_ns))
