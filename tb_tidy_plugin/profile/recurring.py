"""Recurring work of a job, as opposed to one-time work at its start."""

from __future__ import annotations

import re
from collections import defaultdict

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps import UNMARKED
from tb_tidy_plugin.trace.columns import ABSENT, Rows

_NUMBER = re.compile(r"(?<!\d)\d+$")
"""Number at the end of `ProfilerStep#12` and of annotations that count, which makes each call's name different."""


def recurring(profile: Profile, rows: Rows) -> Rows:
    """The `rows` of the tree that lie in a step and that the same function also calls in another step.

    Excludes loading a model, or a constant created on first use: these belong to no step, or to one. With a single
    step, all rows in it count; without steps, those that one function calls twice.
    """
    has_steps = profile.steps.basis not in UNMARKED
    moments = (profile.step_of(rows) if has_steps else rows).tolist()
    callers = [_NUMBER.sub("", profile.calls.caller_name(row)) for row in rows.tolist()]
    found: dict[str, set[int]] = defaultdict(set)
    for caller, moment in zip(callers, moments, strict=True):
        found[caller].add(moment)
    least = 1 if has_steps and len(profile.steps.items) == 1 else 2
    often = {caller for caller, times in found.items() if len(times - {ABSENT}) >= least}
    kept = [at for at, caller in enumerate(callers) if caller in often and moments[at] != ABSENT]
    return rows[kept]
