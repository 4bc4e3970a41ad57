"""The event tree, rebuilt exactly as PyTorch's collection code builds it, as arrays.

Source: `build_tree` in https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/profiler/collection.cpp. Its heap of
end times pops events of all threads together. Popping touches only the stack of the event's own thread, so each thread
can be updated when it is next needed; a stack with the least end time of each frame and the frames around it shows in
constant time how far.

The loops over all events exist twice: in Python, and compiled (`_nest.pyx`) if a compiler was present at installation.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.intervals import last_begun
from tb_tidy_plugin.profile.events.nesting import nearest
from tb_tidy_plugin.system.compiled import is_usable
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, EventTable, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import order_by, united

IS_COMPILED = is_usable("tb_tidy_plugin.profile._nest")
if IS_COMPILED:
    from tb_tidy_plugin.profile._nest import above, pre_order, replay

_Stack: TypeAlias = list[tuple[int, float]]

MOST_DEEP = 1000
"""Most levels of the tree. Python itself stops there, recordings have up to 60; a query for an event around each event
takes at most that many times as long.
"""

CLIMBED = 64  # levels that are climbed one by one; few calls need more


class Tree(msgspec.Struct, frozen=True):
    """Parents and subtrees of the host events of a table whose first `size` rows are in pre-order.

    All arrays have `size` entries. The subtree of `row` is the slice `row : last_descendant[row] + 1`.

    Attributes:
        parent: row of the parent, `ABSENT` for roots.
        last_descendant: last row of the subtree, the row itself for leaves.
        depth: 0 for roots.
    """

    parent: Numbers
    last_descendant: Numbers
    depth: Numbers

    @property
    def size(self) -> int:
        """Number of host events."""
        return len(self.parent)

    def nearest_ancestor(self, wanted: Mask) -> Numbers:
        """The nearest proper ancestor of each row for which `wanted` holds, `ABSENT` if there is none."""
        if IS_COMPILED:
            found = np.empty_like(self.parent)
            above(self.parent, wanted.view(np.uint8), found)
            return found
        return np.append(nearest(self.parent, wanted), np.int32(ABSENT))[self.parent]


def build_tree(table: EventTable, also: Rows | None = None) -> tuple[Rows, Tree]:
    """The rows of `table` that belong to the tree, in pre-order, and the tree over them.

    Args:
        table: one trace.
        also: further rows to place as the live profiler would, for comparisons with it; all of the tree by default.
    """
    rows = np.flatnonzero(table.is_category(HOST_TREE))
    if also is not None:
        rows = united(rows, also)
    has_index = bool((table.event_index[rows] != ABSENT).any())
    tie = table.event_index[rows] if has_index else -table.end_ns[rows]
    rows = rows[order_by(table.start_ns[rows], tie, table.file_order[rows])]
    parent, depth = _replayed_natively(table, rows) if IS_COMPILED else _replayed(table, rows)
    position, last = _pre_order_natively(parent) if IS_COMPILED else _pre_order(parent)
    order = np.empty_like(position)
    order[position] = np.arange(len(position), dtype=np.int32)
    new_parent = np.append(position, np.int32(ABSENT))[parent[order]]
    return rows[order], Tree(new_parent, last[order], depth[order])


def forward_threads(table: EventTable) -> dict[int, int]:
    """The thread for each of the profiler's small forward thread ids, by majority.

    A backward operator names its forward thread by a small id and shares its sequence number with a forward operator,
    whose thread is known.
    """
    numbered = np.flatnonzero((table.category == Category.OPERATOR) & (table.sequence != ABSENT))
    forward = numbered[table.forward_thread[numbered] == 0]
    backward = numbered[table.forward_thread[numbered] != 0]
    if not len(forward) or not len(backward):
        return {}
    sequences, first = np.unique(table.sequence[forward], return_index=True)
    at = np.minimum(np.searchsorted(sequences, table.sequence[backward]), len(sequences) - 1)
    same = sequences[at] == table.sequence[backward]
    small_id, thread = table.forward_thread[backward[same]], table.thread[forward[first[at[same]]]]
    pairs, counts = np.unique(small_id.astype(np.int64) * len(table.threads) + thread, return_counts=True)
    ranked = np.divmod(pairs[np.argsort(counts, kind="stable")], len(table.threads))
    return dict(zip(*(each.tolist() for each in ranked), strict=True))  # later, larger counts win


def _replayed(table: EventTable, rows: Rows) -> tuple[Numbers, Numbers]:
    """Parent (as a position in `rows`) and depth of each of `rows`, which are sorted by start."""
    parents, depths = [ABSENT] * len(rows), [0] * len(rows)
    stacks: dict[int, _Stack] = {}
    threads_by_id = forward_threads(table)
    columns = (table.thread, table.start_ns, table.end_ns, table.forward_thread)
    for at, (thread, start, end, forward_id) in enumerate(
        zip(*(column[rows].tolist() for column in columns), strict=True)
    ):
        stack = _open_at(stacks, thread, start)
        is_foreign = False
        if stack is None and forward_id:
            stack = _open_at(stacks, threads_by_id.get(forward_id, ABSENT), start)
            is_foreign = stack is not None
        if stack:
            parent = parents[at] = stack[-1][0]
            depths[at] = depths[parent] + 1
        if end <= start:
            continue  # a leaf
        if stack is None or is_foreign:
            # Popping an event that hangs below another thread's frame leaves that frame on top of this thread's stack
            # forever, as
            # in the live profiler.
            stacks[thread] = [(stack[-1][0], math.inf), (at, end)] if stack else [(at, end)]
        else:
            stack.append((at, min(end, stack[-1][1])))
    return np.array(parents, np.int32), np.array(depths, np.int32)


def _open_at(stacks: dict[int, _Stack], thread: int, time: int) -> _Stack | None:
    """The frames of `thread` still open at `time`, outermost first; None without any."""
    stack = stacks.get(thread)
    if stack is None:
        return None
    while stack[-1][1] < time:
        stack.pop()
        if not stack:
            del stacks[thread]
            return None
    return stack


def _pre_order(parent: Numbers) -> tuple[Numbers, Numbers]:
    """Pre-order position of each event, and that of its last descendant; parents come before their children."""
    parents = parent.tolist()
    sizes = [1] * len(parents)
    for at in range(len(parents) - 1, -1, -1):
        if parents[at] != ABSENT:
            sizes[parents[at]] += sizes[at]
    positions, free = [0] * len(parents), [0] * (len(parents) + 1)
    for at, above in enumerate(parents):
        positions[at] = free[above]  # roots share the last entry, which `ABSENT` points at
        free[above] += sizes[at]
        free[at] = positions[at] + 1
    position = np.array(positions, np.int32)
    return position, position + np.array(sizes, np.int32) - np.int32(1)


# The same, compiled


def _replayed_natively(table: EventTable, rows: Rows) -> tuple[Numbers, Numbers]:
    parent, depth = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    top = np.full(len(table.threads), ABSENT, np.int64)
    columns = (table.thread[rows], table.start_ns[rows], table.end_ns[rows], _forward_thread(table, rows))
    replay(*columns, top, parent, depth)
    return parent, depth


def _forward_thread(table: EventTable, rows: Rows) -> Numbers:
    """The thread for the forward thread id of each of `rows`, `ABSENT` if it has none or it is unknown."""
    known = np.full(int(table.forward_thread.max(initial=0)) + 2, ABSENT, np.int32)  # the last one is that of -1
    for small_id, thread in forward_threads(table).items():
        known[small_id] = thread
    known[0] = ABSENT  # no id
    return known[table.forward_thread[rows]]


def _pre_order_natively(parent: Numbers) -> tuple[Numbers, Numbers]:
    size, position = np.empty_like(parent), np.empty_like(parent)
    pre_order(parent, size, np.empty(len(parent) + 1, np.int32), position)
    size += position
    size -= 1
    return position, size


def innermost(table: EventTable, tree: Tree, rows: Rows) -> Rows:
    """The innermost event of the tree that covers the start of each of `rows` on its thread, `ABSENT` for none."""
    long = np.flatnonzero(table.end_ns[: tree.size] > table.start_ns[: tree.size])
    times = table.start_ns[rows]
    begun = last_begun(table.thread[long], table.start_ns[long], table.thread[rows], times)
    found = np.append(long, ABSENT)[begun]
    over = np.flatnonzero((found != ABSENT) & (table.end_ns[found] < times))
    for _ in range(CLIMBED):
        found[over] = tree.parent[found[over]]
        over = over[(found[over] != ABSENT) & (table.end_ns[found[over]] < times[over])]
    if len(over):
        found[over] = _leapt(tree, table.end_ns[: tree.size], found[over], times[over])
    return found


def _leapt(tree: Tree, end_ns: Times, rows: Rows, times: Times) -> Rows:
    """The row, or the innermost event above it, that ends at its time or later; `ABSENT` for none.

    Leaps over as many levels as end before that time: level by level, each row would take as long as its depth.
    """
    above = np.where(tree.parent == ABSENT, tree.size, tree.parent)
    leaps = [(np.append(above, tree.size), np.append(end_ns, np.iinfo(np.int64).max))]
    for _ in range(int(tree.depth.max(initial=0)).bit_length()):
        above, latest = leaps[-1]
        leaps.append((above[above], np.maximum(latest, latest[above])))
    for above, latest in reversed(leaps):
        rows = np.where(latest[rows] < times, above[rows], rows)
    return np.where(rows == tree.size, ABSENT, rows)
