"""Nesting of calls by their times, as in torch's `prof.key_averages()`.

The event tree follows the profiler's collection code; the figures of `key_averages` follow another rule, that of
`EventList._populate_cpu_children` and `_remove_dup_nodes` in
https://github.com/pytorch/pytorch/blob/v2.13.0/torch/autograd/profiler_util.py: on one thread, a call is inside the
innermost call whose times contain its own; runtime calls (`cudaLaunchKernel`) take part as calls of their own; and an
only child with its parent's name is merged with it. So a backward operator is inside no forward call.

Some recordings hold calls that end a little after the call that made them
(https://github.com/pytorch/pytorch/issues/128479). Torch's rule puts those beside their callers, and counts their time
twice. Here `fitted` cuts calls of one thread so that each instant belongs to one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.system.compiled import is_usable
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Mask, Numbers, Rows, Times
from tb_tidy_plugin.trace.sets import among, order_by
from tb_tidy_plugin.trace.strings import MOST_ANSWERS, NumberTable, asked_once, numbers_where

IS_COMPILED = is_usable("tb_tidy_plugin.profile._nest")
if IS_COMPILED:
    from tb_tidy_plugin.profile._nest import around, contain, unfold

HOST_CALLS = (Category.OPERATOR, Category.ANNOTATION, Category.RUNTIME)

STEP_NUMBER = re.compile(r"^ProfilerStep#.*", re.DOTALL)

NOT_COUNTED = aten.names("known", "_version is_leaf output_nr") | {
    "profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit",
}  # fmt: skip
"""Names that torch leaves out of its tables (`_filter_name`): the profiler's own work, and questions about tensors."""


class Nesting(msgspec.Struct, frozen=True):
    """Calls in pre-order, thread by thread: the calls inside call `i` are the entries `i + 1` to `last[i]`.

    All arrays but `at` have one entry per call; positions are positions in them.

    Attributes:
        rows: the row of the table of each call.
        parent: position of the innermost call around each one, `ABSENT` for none.
        last: position of the last call inside each one, its own for leaves.
        self_ns: its duration without the time that calls directly inside it cover.
        at: position of each row of the table, `ABSENT` for rows that are not calls; merged calls have that of the call
            they are merged with.
    """

    rows: Rows
    parent: Numbers
    last: Numbers
    self_ns: Times
    at: Numbers

    def __len__(self) -> int:
        return len(self.rows)

    def nearest(self, wanted: Mask) -> Numbers:
        """The innermost call for which `wanted` holds, among each call and those around it; `ABSENT` for none."""
        return nearest(self.parent, wanted)

    def sums(self, values: Times) -> Times:
        """The sum of `values` over each call and all calls inside it; `values` has one entry per call."""
        before = np.concatenate([[0], np.cumsum(values)])
        inside: Times = before[self.last + 1] - before[:-1]
        return inside

    def outermost(self, chosen: Rows, group: Numbers | Rows | None = None) -> Mask:
        """Mask of the positions `chosen` without another of them (of the same group) around them.

        Args:
            chosen: positions.
            group: a number of at least 0 for each of `chosen`; all are one group by default.
        """
        number = np.zeros(len(chosen), np.int64) if group is None else group.astype(np.int64)
        order = np.lexsort((chosen, number))
        base = number[order] * (len(self) + 1)  # so that the positions of one group lie below those of the next
        reach = np.maximum.accumulate(base + self.last[chosen[order]] + 1)
        found = np.empty(len(chosen), np.bool_)
        found[order] = base + chosen[order] >= np.concatenate([[0], reach])[: len(chosen)]
        return found


def plain_names(names: tuple[str, ...]) -> tuple[Numbers, tuple[str, ...]]:
    """The number of each name's group in torch, and the groups: overloads and steps are merged."""
    plain = NumberTable[str]()
    return plain.numbers(map(asked_once(_plain_name, MOST_ANSWERS), names), len(names)), plain.values()


def _plain_name(name: str) -> str:
    return STEP_NUMBER.sub("ProfilerStep*", aten.without_overload(name))


def nest(table: EventTable, name: Numbers, categories: Iterable[Category] = HOST_CALLS) -> Nesting:
    """The calls of `categories`, nested by their times.

    Args:
        table: one trace.
        name: number of each of the table's names as torch groups it; an only child with its parent's number is merged
            with it.
        categories: categories of calls. With `Category.PYTHON`, times are those of torch in recordings with stacks.
    """
    ignored = among(table.name, numbers_where(table.names, NOT_COUNTED.__contains__))
    rows = np.flatnonzero(table.is_category(categories) & ~ignored)
    is_launch = table.category[rows] == Category.RUNTIME
    rows = outer_first(table, rows, is_launch, table.event_index[rows], table.file_order[rows])
    categories = {*categories}
    ends = table.end_ns[rows]
    parent, last, self_ns = contained(table, rows, ends)
    # Annotations begin and end inside the functions that open and close them: only calls of one kind nest by time.
    if Category.PYTHON not in categories and (cut := fitted(table, rows, parent)) is not None:
        parent, last, self_ns = contained(table, rows, cut)
    at = np.full(len(table), ABSENT, np.int32)
    at[rows] = np.arange(len(rows))
    outlives = (parent != ABSENT) & (ends > ends[parent])
    return _folded(Nesting(rows, parent, last, self_ns, at), name[table.name[rows]], outlives)


def nearest(parent: Numbers, wanted: Mask) -> Numbers:
    """The innermost event for which `wanted` holds, among each event and those around it; `ABSENT` for none.

    Args:
        parent: position of the event around each one, which comes before it; `ABSENT` for none.
        wanted: one entry per event.
    """
    if IS_COMPILED:
        found = np.empty(len(parent), np.int32)
        around(parent, wanted.view(np.uint8), found)
        return found
    own = np.arange(len(parent), dtype=np.int32)
    up = np.append(np.where(wanted, own, parent), np.int32(ABSENT))  # the last entry is for `ABSENT`
    while not np.array_equal(further := up[up], up):
        up = further
    return up[:-1]


def outer_first(table: EventTable, rows: Rows, *ties: NDArray[np.bool_ | np.integer]) -> Rows:
    """`rows` by thread, start and descending end, as `contained` needs them; then by `ties`, the first one first."""
    return rows[order_by(table.thread[rows], table.start_ns[rows], -table.end_ns[rows], *ties)]


def contained(table: EventTable, rows: Rows, end_ns: Times | None = None) -> tuple[Numbers, Numbers, Times]:
    """Parent, last descendant and self time of `rows`, which are sorted by thread, start and descending end.

    `end_ns` are their ends, by default those of the table; or `fitted`.
    """
    end_ns = table.end_ns[rows] if end_ns is None else end_ns
    return _contained_natively(table, rows, end_ns) if IS_COMPILED else _contained(table, rows, end_ns)


def fitted(table: EventTable, rows: Rows, parent: Numbers) -> Times | None:
    """Ends of `rows` with which each thread's calls lie inside or beside each other; None if the recorded ones do.

    A call that begins inside another and ends after it is inside it if at least half of it is: the other one ends as
    late as it does. Else the other one ends where it begins.

    Args:
        table, rows: as for `contained`. parent: of the calls with their recorded ends.
    """
    starts, ends = table.start_ns[rows], table.end_ns[rows]
    order = np.argsort(parent, kind="stable")  # calls beside each other follow each other
    before, after = order[:-1], order[1:]
    beside = (parent[before] == parent[after]) & (table.thread[rows[before]] == table.thread[rows[after]])
    if not (beside & (ends[before] > starts[after])).any():
        return None
    fit = ends.tolist()
    stack: list[int] = []
    thread = None

    def close() -> None:
        last = stack.pop()
        if stack:
            fit[stack[-1]] = max(fit[stack[-1]], fit[last])

    for at, (own, start) in enumerate(zip(table.thread[rows].tolist(), starts.tolist(), strict=True)):
        while stack and (own != thread or start >= fit[stack[-1]]):
            close()
        thread = own
        while stack and 2 * (fit[stack[-1]] - start) < fit[at] - start:
            fit[stack[-1]] = min(fit[stack[-1]], start)
            close()
        stack.append(at)
    while stack:
        close()
    return np.array(fit, np.int64)


def _contained(table: EventTable, rows: Rows, end_ns: Times) -> tuple[Numbers, Numbers, Times]:
    count = len(rows)
    parents, lasts = [ABSENT] * count, list(range(count))
    threads, starts, ends = (column.tolist() for column in (table.thread[rows], table.start_ns[rows], end_ns))
    self_ns = [end - start for start, end in zip(starts, ends, strict=True)]
    covered = starts.copy()  # end of the time that the calls directly inside each one cover so far
    stack: list[int] = []
    thread = None
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        while stack and (threads[at] != thread or start >= ends[stack[-1]] or end > ends[stack[-1]]):
            lasts[stack.pop()] = at - 1
        thread = threads[at]
        if stack:
            parent = parents[at] = stack[-1]
            if end > covered[parent]:
                self_ns[parent] -= end - max(start, covered[parent])
                covered[parent] = end
        stack.append(at)
    for open_to_the_end in stack:
        lasts[open_to_the_end] = count - 1
    return np.array(parents, np.int32), np.array(lasts, np.int32), np.array(self_ns, np.int64)


def _contained_natively(table: EventTable, rows: Rows, end_ns: Times) -> tuple[Numbers, Numbers, Times]:
    parent, last = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    self_ns, covered = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    contain(table.thread[rows], table.start_ns[rows], end_ns, parent, last, self_ns, covered)
    return parent, last, self_ns


def unfolded(start: Times, end: Times, parent: Numbers, first: int) -> tuple[Times, Numbers]:
    """Ascending times at which the innermost call of one thread changes, and that call; `ABSENT` for none.

    Args:
        start, end, parent: of its calls, as in `contained`; `parent` among all threads' calls.
        first: position of its first call among these.
    """
    if IS_COMPILED:
        times, label = np.empty(2 * len(start), np.int64), np.empty(2 * len(start), np.int32)
        if (count := unfold(start, end, parent, first, times, label)) != ABSENT:
            return times[:count], label[:count]
    # Of ends at one time the inner ones come first, and all of them before starts; starts are already sorted.
    inner_first = np.argsort(end[::-1], kind="stable")
    times = np.concatenate([end[::-1][inner_first], start])
    label = np.concatenate([parent[::-1][inner_first], np.arange(first, first + len(start), dtype=np.int32)])
    order = np.argsort(times, kind="stable")
    times, label = times[order], label[order]
    last = np.append(times[1:] != times[:-1], True)[: len(times)]
    return times[last], label[last]


def _folded(nesting: Nesting, name: Numbers, outlives: Mask) -> Nesting:
    """The nesting with each only child merged into a parent of the same name: its self time is the parent's.

    A child that `outlives` its parent stays: together they would take more time than the parent.
    """
    parent = nesting.parent
    children = np.bincount(parent[parent != ABSENT], minlength=len(nesting))
    is_folded = (parent != ABSENT) & (name == name[parent]) & (children[parent] == 1) & ~outlives
    if not is_folded.any():
        return nesting
    owner = nesting.nearest(~is_folded)
    self_ns = nesting.self_ns.copy()
    np.add.at(self_ns, owner[is_folded], nesting.self_ns[is_folded])
    kept = ~is_folded
    new = np.append(np.cumsum(kept, dtype=np.int32) - np.int32(1), np.int32(ABSENT))
    above = np.append(owner, np.int32(ABSENT))[parent[kept]]
    where = np.append(new[owner], np.int32(ABSENT))[nesting.at]
    return Nesting(nesting.rows[kept], new[above], new[nesting.last[kept]], self_ns[kept], where)
