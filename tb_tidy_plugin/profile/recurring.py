"""What a job does again and again, as opposed to what it does once to get going."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping

from tb_tidy_plugin.profile.calls import rows_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import ABSENT


def recurring(profile: Profile, kinds: Mapping[int, Hashable]) -> list[int]:
    """Those of the rows in `kinds` that lie in a step, and whose kind comes again in another one.

    A model that is loaded, a constant that is made at first use: these belong to no step, or to one. Of a single step
    all is taken to come again; without steps what comes twice.
    """
    rows, steps = rows_of(kinds), profile.steps
    has_steps = steps.basis not in {"whole_trace", "none"}
    moments = profile.step_of(rows) if has_steps else rows
    found: dict[Hashable, set[int]] = defaultdict(set)
    for row, moment in zip(rows.tolist(), moments.tolist(), strict=True):
        found[kinds[row]].add(moment)
    least = 1 if has_steps and len(steps.items) == 1 else 2
    often = {kind for kind, times in found.items() if len(times - {ABSENT}) >= least}
    return [row for row in rows[moments != ABSENT].tolist() if kinds[row] in often]
