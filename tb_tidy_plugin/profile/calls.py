"""The call tree: the event tree without built-ins and without the operators inside other operators."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from tb_tidy_plugin.profile.loops import Loop, LoopLimits, loops_in
from tb_tidy_plugin.profile.tree import Tree
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Mask, Numbers, Rows
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

BUILT_IN = "<built-in "


class Calls(msgspec.Struct, frozen=True):
    """Calls of a profile and their bodies; a body is the sequence of calls that one call of a function made itself.

    Calls are operators that no other operator runs, Python functions, modules and annotations. Built-ins are
    transparent:
    the function around `<built-in method arange …>` counts as the caller of what it runs.

    Attributes:
        table, tree: of the profile.
        caller: for each row of the tree, the function, module or annotation that called it, `ABSENT` for none.
        outermost: mask of the tree's rows that are operators which no other operator runs.
        operators_before: number of these before each row, and before the end.
        body: for each row of the tree, the number of the body that it is a call of, `ABSENT` for other rows.
        rows: all calls, body by body.
        bounds: start of each body in `rows`, and the end of the last one.
    """

    table: EventTable
    tree: Tree
    caller: Numbers
    outermost: Mask
    operators_before: Numbers
    body: Numbers
    rows: Rows
    bounds: Rows

    def caller_name(self, row: int) -> str:
        """The name of the caller of `row`, empty without a caller."""
        caller = int(self.caller[row])
        return "" if caller == ABSENT else self._name(caller)

    def among(self, operators: Rows) -> Rows:
        """The `operators` that no other operator runs."""
        return operators[self.outermost[operators]]

    def bodies_with(self, calls: Rows) -> list[list[int]]:
        """The bodies that contain one of `calls`. Calls without a caller form one body per thread."""
        wanted = distinct(self.body[calls])
        wanted = wanted[wanted != ABSENT]
        return [self.rows[self.bounds[number] : self.bounds[number + 1]].tolist() for number in wanted.tolist()]

    def body_of(self, row: int) -> list[int]:
        """Calls that the call `row` made itself; empty for an operator."""
        below = np.arange(row + 1, int(self.tree.last_descendant[row]) + 1)
        own = below[(self.caller[below] == row) & (self.body[below] != ABSENT)]
        return next(iter(self.bodies_with(own[:1])), [])

    def operators_in(self, calls: Iterable[int]) -> list[int]:
        """The operators among `calls` and those that they run, without operators inside other operators."""
        spans = [(call, int(self.tree.last_descendant[call]) + 1) for call in calls]
        return [row for first, end in spans for row in (np.flatnonzero(self.outermost[first:end]) + first).tolist()]

    def loops(
        self, picks: Rows, heads: Rows, limits: LoopLimits, is_own: Callable[[str], bool | None]
    ) -> Iterator[Loop]:
        """Groups of successive calls in one body, like the iterations of a Python loop.

        A group starts with one of `picks` or with a function that calls one; in bodies without such groups, with the
        call after one of `heads`, which produce pieces. `is_own` says by name whether a function is the user's own
        code, None if the name is not a function; bodies of other code hold no loops. A function that contains a loop
        itself starts no group of the loop that calls it.
        """
        callers = distinct(self.caller[picks])
        callers = callers[callers != ABSENT]
        is_users = among(self.table.name[callers], numbers_where(self.table.names, is_own))
        starts, from_heads = set(callers[is_users].tolist()).union(picks.tolist()), set(heads.tolist())
        inner_first = sorted(self.bodies_with(rows_of([*starts, *from_heads])), reverse=True)
        for body in inner_first:
            if is_own(self.caller_name(body[0])) is not False:
                loops = self._loops_in(body, starts, limits) or [*self._loops_after(body, from_heads, limits)]
                starts -= {int(self.caller[body[0]])} if loops else set()
                yield from loops

    def _loops_in(self, body: Sequence[int], starts: Container[int], limits: LoopLimits) -> list[Loop]:
        first = rows_of(body)
        end = self.tree.last_descendant[first] + 1
        sizes = self.operators_before[end] - self.operators_before[first]
        sizes[np.searchsorted(limits.never, first) != np.searchsorted(limits.never, end)] = limits.largest + 1
        before = np.append(0, np.cumsum(sizes)).tolist()
        found = loops_in(body, starts, lambda begin, end: before[end] - before[begin] <= limits.largest, self._name)
        return [loop for loop in found if len(loop.groups) >= limits.shortest]

    def _loops_after(self, body: Sequence[int], heads: Container[int], limits: LoopLimits) -> Iterator[Loop]:
        at = [position for position, row in enumerate(body) if row in heads]
        for head, end in pairwise([*at, len(body)]):
            after = body[head + 1 : end]
            # The call may be a function that contains the loop, such as a list comprehension.
            for rest in (after, *(self.body_of(row) for row in after[:1])):
                starts = {row for row in rest if self._name(row) == self._name(rest[0])}
                yield from self._loops_in(rest, starts, limits)[:1]

    def _name(self, row: int) -> str:
        name: str = self.table.names[self.table.name[row]]
        return name


def rows_of(events: Iterable[int]) -> Rows:
    """The rows of `events` as an array."""
    return np.array([*events], np.int64)


def calls_of(table: EventTable, tree: Tree) -> Calls:
    """The calls of a profile."""
    category, name, size = table.category[: tree.size], table.name[: tree.size], tree.size
    is_operator = category == Category.OPERATOR
    outermost = is_operator & (tree.nearest_ancestor(is_operator) == ABSENT)
    built_in = among(name, numbers_where(table.names, lambda text: text.startswith(BUILT_IN)))
    calls_others = ((category == Category.PYTHON) & ~built_in) | (category == Category.ANNOTATION)
    caller = tree.nearest_ancestor(calls_others)
    rows = np.flatnonzero(outermost | calls_others)
    rows = rows[np.lexsort((rows, caller[rows], table.thread[rows]))]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (np.diff(caller[rows]) != 0) | (np.diff(table.thread[rows]) != 0)
    body = np.full(size, ABSENT, np.int32)
    body[rows] = np.cumsum(is_first) - 1
    bounds = np.append(np.flatnonzero(is_first), len(rows))
    before = np.zeros(size + 1, np.int32)
    np.cumsum(outermost, out=before[1:])
    return Calls(table, tree, caller, outermost, before, body, rows, bounds)
