"""Who called what: the event tree without built-ins and without what operators run inside themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.profile.tree import Tree
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Mask, Rows
from tb_tidy_plugin.trace.strings import numbers_where

BUILT_IN = "<built-in "


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a profile and the bodies they stand in; a body is what one call of a function ran itself, in order.

    Calls are operators that no other operator runs, Python functions, modules and annotations. Built-ins are looked
    through: what `<built-in method arange …>` runs was called by the function around it.

    Attributes:
        caller: for each row of the tree the function, module or annotation that called it, `ABSENT` for none.
        outermost: which rows of the tree are operators that no other operator runs.
        body: for each row of the tree the number of the body it is a call of, `ABSENT` for what is no call.
        rows: all calls, body by body.
        bounds: where each body begins in `rows`, and the end of the last one.
    """

    caller: Rows
    outermost: Mask
    body: Rows
    rows: Rows
    bounds: Rows

    def bodies_with(self, calls: Rows) -> list[list[int]]:
        """The bodies that hold one of `calls`. Calls that nothing called make one body per thread."""
        wanted = np.unique(self.body[calls])
        wanted = wanted[wanted != ABSENT]
        return [self.rows[self.bounds[number] : self.bounds[number + 1]].tolist() for number in wanted.tolist()]


def calls_of(table: EventTable, tree: Tree) -> Calls:
    """The calls of a profile."""
    category, name, size = table.category[: tree.size], table.name[: tree.size], tree.size
    is_operator = category == Category.OPERATOR
    outermost = is_operator & (tree.nearest_ancestor(is_operator) == ABSENT)
    built_in = np.isin(name, numbers_where(table.names, lambda text: text.startswith(BUILT_IN)))
    calls_others = ((category == Category.PYTHON) & ~built_in) | (category == Category.ANNOTATION)
    caller = tree.nearest_ancestor(calls_others)
    rows = np.flatnonzero(outermost | calls_others)
    rows = rows[np.lexsort((rows, caller[rows], table.thread[rows]))]
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (np.diff(caller[rows]) != 0) | (np.diff(table.thread[rows]) != 0)
    body = np.full(size, ABSENT, np.int64)
    body[rows] = np.cumsum(is_first) - 1
    return Calls(caller, outermost, body, rows, np.append(np.flatnonzero(is_first), len(rows)))
