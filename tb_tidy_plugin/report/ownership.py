"""Which rule speaks when several find the same time: the one place where that is decided.

A cause owns its consequences: what a user mends first makes the rest go away. A match of a rule is left out where
matches of the rules named before it cover at least `MOSTLY` of its time on the same thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.rulekit import Match, Profile

MOSTLY = 0.5
"""From this part of a match's time on it is the owner's: the larger half of what it costs goes with the owner's fix."""

OWNERS: Mapping[str, tuple[str, ...]] = {
    # Scale, bias and mask of scores, written out: the fused attention does them, too.
    "elementwise-op-flood": ("unfused-attention",),
}
"""For each rule that gives way, the rules that it gives way to, with the reason beside each."""


def without_owned(
    profile: Profile, found: Mapping[str, Sequence[Match]]
) -> tuple[dict[str, list[Match]], dict[str, dict[str, int]]]:
    """The matches that are left of each rule, by name, and how many of each went to which owner."""
    left: dict[str, list[Match]] = {}
    owned: dict[str, dict[str, int]] = {}
    for rule, matches in found.items():
        times = {owner: _time_by_thread(profile, found[owner]) for owner in OWNERS.get(rule, ()) if found.get(owner)}
        left[rule] = []
        for match in matches:
            owner = next((owner for owner, time in times.items() if _is_owned(profile, match, time)), None)
            if owner is None:
                left[rule].append(match)
            else:
                counts = owned.setdefault(rule, {})
                counts[owner] = counts.get(owner, 0) + 1
    return left, owned


def _time_by_thread(profile: Profile, matches: Sequence[Match]) -> dict[int, Intervals]:
    rows = np.unique(np.array([row for match in matches for row in match.events], np.int64))
    threads = profile.table.thread[rows]
    return {int(thread): profile.covered(rows[threads == thread]) for thread in np.unique(threads)}


def _is_owned(profile: Profile, match: Match, owner: Mapping[int, Intervals]) -> bool:
    mine = _time_by_thread(profile, [match])
    total_ns = sum(time.total_ns for time in mine.values())
    shared_ns = sum(time.overlap_ns(owner[thread]) for thread, time in mine.items() if thread in owner)
    return total_ns > 0 and shared_ns >= MOSTLY * total_ns
