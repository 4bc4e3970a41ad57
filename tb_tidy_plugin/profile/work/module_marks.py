"""Times at which a host thread changes from one nn.Module to another, or from the forward to the backward pass.

These are the modules' frames (`nn.Module: Linear_0`, recorded with stacks) and the operators of the backward pass. The
latter carry the `Sequence number` of the forward operator whose gradient they compute, and the profiler's small id of
the forward operator's thread, since each thread has its own numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts.event_names import BACKWARD_NODE, MODULE
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import among, numbered
from tb_tidy_plugin.trace.strings import numbers_where


class Marks(msgspec.Struct, frozen=True):
    """The events at which module or pass change: modules' frames and backward operators, in order of start.

    They are nested by their times on their own thread. The event tree is no help: it puts an event that begins in the
    same nanosecond (before 2024: microsecond) in which a frame ends inside that frame, and backward operators of
    another thread below whatever frame is open on the forward thread.

    Attributes:
        row: row of the profile. is_frame: True for a module's frame, False for a backward operator.
        around: position of the innermost mark around each, `ABSENT` for none.
        end_ns: end, or that of a mark around it if that ends earlier.
        of_tree_row: position of the innermost mark of each tree row, including the row itself.
    """

    row: Rows
    is_frame: Mask
    around: Rows
    end_ns: Times
    of_tree_row: Rows


def marks_of(profile: Profile) -> Marks:
    """All modules' frames and backward operators of a profile."""
    table, size = profile.table, profile.tree.size
    name, category = table.name[:size], table.category[:size]
    is_frame = (category == Category.PYTHON) & among(name, numbers_where(table.names, _starts_with(MODULE)))
    is_node = among(name, numbers_where(table.names, _starts_with(BACKWARD_NODE)))
    has_forward = (table.sequence[:size] != ABSENT) & (table.forward_thread[:size] > 0)
    is_mark = is_frame | ((category == Category.OPERATOR) & (is_node | has_forward))
    row = np.flatnonzero(is_mark)
    row = row[np.argsort(table.start_ns[row], kind="stable")]
    around, end_ns = _nested(*(column[row].tolist() for column in (table.thread, table.start_ns, table.end_ns)))
    return Marks(row, is_frame[row], around, end_ns, _innermost(profile, row, around, end_ns))


def _starts_with(prefix: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(prefix)


def _nested(threads: list[int], starts: list[int], ends: list[int]) -> tuple[Rows, Times]:
    """The innermost mark around each mark on its thread, and the mark's end, cut off there; in order of start."""
    around, cut = [ABSENT] * len(starts), ends.copy()
    stacks: dict[int, list[int]] = {}
    for at, (thread, start) in enumerate(zip(threads, starts, strict=True)):
        stack = stacks.setdefault(thread, [])
        while stack and cut[stack[-1]] <= start:
            stack.pop()
        if stack:
            around[at] = stack[-1]
            cut[at] = min(ends[at], cut[stack[-1]])
        stack.append(at)
    return np.array(around, np.int64), np.array(cut, np.int64)


def _innermost(profile: Profile, mark_row: Rows, around: Rows, end_ns: Times) -> Rows:
    """The innermost mark open on the thread of each tree row when it begins, including the row itself."""
    table, size = profile.table, profile.tree.size
    start, thread = table.start_ns[:size], table.thread[:size]
    is_instant = table.end_ns[:size] == start
    position = np.full(size, ABSENT, np.int64)
    position[mark_row] = np.arange(len(mark_row))
    order = np.lexsort((np.arange(size), start, thread))
    latest = np.maximum.accumulate(np.where(position[order] != ABSENT, np.arange(size), ABSENT))
    begun = order[latest]  # the row of the latest mark, of another thread or a wrong one if there was none before
    found = np.full(size, ABSENT, np.int64)
    found[order] = np.where((latest != ABSENT) & (thread[begun] == thread[order]), position[begun], ABSENT)
    rows = np.flatnonzero((found != ABSENT) & (position == ABSENT))
    while len(rows):
        ends = end_ns[found[rows]]
        rows = rows[(ends < start[rows]) | ((ends == start[rows]) & ~is_instant[rows])]
        found[rows] = around[found[rows]]
        rows = rows[found[rows] != ABSENT]
    return found


def forward_frames(profile: Profile, marks: Marks) -> Rows:
    """The first frame of a function `forward` in each mark and in no module inside, else `ABSENT`."""
    table, size = profile.table, profile.tree.size
    is_forward = among(table.name[:size], numbers_where(table.names, lambda name: name.endswith("): forward")))
    rows = np.flatnonzero(is_forward & (table.category[:size] == Category.PYTHON) & (marks.of_tree_row != ABSENT))
    frame = np.full(len(marks.row), ABSENT, np.int64)
    positions, first = np.unique(marks.of_tree_row[rows], return_index=True)
    frame[positions] = rows[first]
    return frame


def forward_marks(profile: Profile, marks: Marks) -> Rows:
    """The innermost mark of the forward operator with the sequence number of each backward operator, else `ABSENT`.

    Several forward operators share a number if autograd recorded only the last of them.
    """
    table = profile.table
    threads = profile.forward_threads
    is_forward = (table.category == Category.OPERATOR) & (table.sequence != ABSENT) & (table.forward_thread == 0)
    forward = np.flatnonzero(is_forward)
    thread = np.array([threads.get(number, ABSENT) for number in table.forward_thread[marks.row].tolist()], np.int64)
    both = np.concatenate([table.sequence[forward], table.sequence[marks.row]])
    number = numbered(both)[1] * len(table.threads)
    key, wanted = number[: len(forward)] + table.thread[forward], number[len(forward) :] + thread
    order = np.argsort(key, kind="stable")
    last = np.searchsorted(key[order], wanted, side="right") - 1
    found = np.full(len(marks.row), ABSENT, np.int64)
    there = np.flatnonzero(~marks.is_frame & (table.sequence[marks.row] != ABSENT) & (thread != ABSENT) & (last >= 0))
    there = there[key[order[last[there]]] == wanted[there]]
    rows = forward[order[last[there]]]
    is_earlier = table.start_ns[rows] <= table.start_ns[marks.row[there]]
    found[there[is_earlier]] = marks.of_tree_row[rows[is_earlier]]
    return found


def own_time(profile: Profile, marks: Marks) -> Times:
    """Time of each mark without marks inside it, cut off at the end of the mark around it."""
    time = marks.end_ns - profile.table.start_ns[marks.row]
    inside = np.flatnonzero(marks.around != ABSENT)
    own = time.copy()
    np.subtract.at(own, marks.around[inside], time[inside])
    return own
