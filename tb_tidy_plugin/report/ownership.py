"""Which rule speaks when several find the same work: the one place where that is decided.

A cause owns its consequences: what a user mends first makes the rest go away. A match of a rule is left out where
findings of the rules named before it cover at least `MOSTLY` of its time on the same threads and streams.

What is compared is the time of events, which is what a fix changes, and not `Match.lost`, which is where that shows:
a device idles after the read that it is lost to, often beside another rule's events. Only what is reported owns: a
finding that is too small to show, or not wanted, takes nothing with it.

`gpu-idle-host-bound` is in neither column. It says how much the host's pace costs altogether, which a user wants to
know beside its causes (loops, updates one by one, chains of small operators); its events are but a sample.
`grad-graph-never-consumed` names operators that stay, and loses a part of their time only. What runs in compiled code
or between its pieces needs no line: rules about operators do not look there, and nothing is recorded of them while
they are compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals, positions_of_each
from tb_tidy_plugin.rulekit import Match, Profile, Rows, Rule

MOSTLY = 0.5
"""From this part of a match's time on it is the owner's: the larger half of what it costs goes with the owner's fix."""

OWNERS: Mapping[str, tuple[str, ...]] = {
    # Its factories make pieces for the loop: one operator on the whole tensor needs none of them.
    "constant-rebuilt-every-step": ("python-loop-tensor-indexing",),
    # Scale, bias and mask of scores, which the fused attention does; and one iteration of a loop after the other, which
    # looks like a long chain, and whose operators come once where the loop is gone. Pieces of a decoder have a name and
    # kernels of their own.
    "elementwise-op-flood": ("unfused-attention", "python-loop-tensor-indexing", "decoder-pieces-written-out"),
    # TF32 takes products to the matrix units, too, by one line.
    "fp32-on-ordinary-cores": ("fp32-matmul-no-tf32",),
    # A copy between the products of attention; that which merges heads behind them lies outside, and may stay.
    "hidden-contiguous-copy": ("unfused-attention",),
    # What makes tensors on the host is fixed where it makes them, and a loop over pieces of one goes as a whole.
    "host-work-holds-device": (
        "tensor-created-on-cpu-then-moved",
        "tensor-from-python-data",
        "python-loop-tensor-indexing",
    ),
    # The checks for NaN read a value for each node of the backward pass.
    "host-sync-scalar-readback": ("anomaly-mode-enabled",),
    # A tensor made where it is used is not copied, from pageable memory or any other.
    "pageable-h2d-copy": ("tensor-created-on-cpu-then-moved",),
    # A loop that does nothing but read takes a tensor apart only to read it.
    "python-loop-tensor-indexing": ("host-sync-scalar-readback",),
}
"""For each rule that gives way, the rules that it gives way to, with the reason beside each."""


def owners_first(rules: Sequence[Rule]) -> list[Rule]:
    """The rules in an order in which all that one gives way to come before it."""
    return sorted(rules, key=lambda rule: _height(rule.name()))


def without_owned(
    profile: Profile, rule: str, matches: Sequence[Match], spoken: Mapping[str, Rows]
) -> tuple[list[Match], dict[str, int]]:
    """The matches that are left of a rule, and how many went to which owner.

    Args:
        profile: the profile they are of.
        rule: the name of the rule.
        matches: what it found.
        spoken: the events of all that is reported of other rules, by name.
    """
    times = {owner: _both_sides(profile, spoken[owner]) for owner in OWNERS.get(rule, ()) if owner in spoken}
    left: list[Match] = []
    owned: dict[str, int] = {}
    for match in matches:
        owner = next((owner for owner, time in times.items() if _is_owned(profile, match, time)), None)
        if owner is None:
            left.append(match)
        else:
            owned[owner] = owned.get(owner, 0) + 1
    return left, owned


def _height(rule: str) -> int:
    return max((_height(owner) + 1 for owner in OWNERS.get(rule, ())), default=0)


def _both_sides(profile: Profile, rows: Rows) -> dict[int, Intervals]:
    """The time of events, of the device work that they launch, and of the host events that launched them."""
    host = rows[rows < profile.tree.size]
    causes = profile.launched_by[rows]
    return _time_by_thread(profile, np.concatenate([rows, profile.device_activity_of_all(host), causes[causes >= 0]]))


def _time_by_thread(profile: Profile, rows: Rows) -> dict[int, Intervals]:
    threads = profile.table.thread[rows]
    return {int(threads[here[0]]): profile.covered(rows[here]) for here in positions_of_each(threads)}


def _is_owned(profile: Profile, match: Match, owner: Mapping[int, Intervals]) -> bool:
    mine = _time_by_thread(profile, np.unique(np.array(match.events, np.int64)))
    total_ns = sum(time.total_ns for time in mine.values())
    shared_ns = sum(time.overlap_ns(owner[thread]) for thread, time in mine.items() if thread in owner)
    return total_ns > 0 and shared_ns >= MOSTLY * total_ns
