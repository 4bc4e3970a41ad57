"""Nodes of autograd's graph: which operators recorded one, and whether a backward pass used it.

Every operator that runs with gradients enabled carries the number that the next node will get (`Sequence number`). The
last operator with a number recorded the node where the number then advances; the operators around it and before it only
read the counter. A node is used where an operator of the backward pass carries its number and its thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.tree import forward_threads
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows


@dataclass(frozen=True, slots=True)
class Nodes:
    """Operators that recorded a node, thread by thread, in the order in which they ran.

    What runs inside the backward pass is left out: a checkpoint that is computed anew, a gradient of a gradient.

    Attributes:
        row: the operator, the innermost that had the number.
        is_used: a backward pass in the profile computes its gradient.
        is_passed: a backward pass in the profile used a younger node of the same thread.
    """

    row: Rows
    is_used: Mask
    is_passed: Mask

    def __len__(self) -> int:
        return len(self.row)


def recorded_nodes(profile: Profile) -> Nodes:
    """All nodes that the profile shows; of the last operator of a thread nothing tells whether it recorded one."""
    table = profile.table
    has_number = (table.category == Category.OPERATOR) & (table.sequence != ABSENT)
    backward = np.flatnonzero(has_number & (table.forward_thread != 0))
    forward = np.flatnonzero(has_number & (table.forward_thread == 0))
    forward = forward[np.argsort(table.thread[forward], kind="stable")]
    thread, number = table.thread[forward].astype(np.int64), table.sequence[forward]
    advances = np.flatnonzero((np.diff(number) > 0) & (np.diff(thread) == 0))
    advances = advances[~profile.inside(backward)[forward[advances]]]
    numbers = int(table.sequence.max(initial=0)) + 1
    first, end = ((thread * numbers + number)[at] for at in (advances, advances + 1))
    used = _used(profile, backward, numbers)
    last_of_thread = (thread[advances] + 1) * numbers
    before_end = np.searchsorted(used, end)
    return Nodes(
        row=forward[advances],
        is_used=before_end > np.searchsorted(used, first),
        is_passed=np.searchsorted(used, last_of_thread) > before_end,
    )


def _used(profile: Profile, backward: Rows, numbers: int) -> Rows:
    """Numbers that backward passes carry, each with its forward thread in one number, in ascending order."""
    table, threads = profile.table, forward_threads(profile.table)
    thread_of = np.full(int(table.forward_thread.max(initial=0)) + 1, ABSENT, np.int64)
    thread_of[list(threads)] = list(threads.values())
    thread = thread_of[table.forward_thread[backward]]
    known = thread != ABSENT
    found: Rows = np.unique(thread[known] * numbers + table.sequence[backward[known]])
    return found
