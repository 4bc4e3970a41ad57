"""The call tree: the event tree without built-ins and without the operators inside other operators; loops in it.

A trace does not name loops. It shows the calls of a loop's body, again and again: a new group begins with each
occurrence of the call that begins the body. The body may contain conditions and other loops, so groups need not be
equal; the reader of a `Loop` judges how alike they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import groupby, pairwise, takewhile
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import Inputs
from tb_tidy_plugin.profile.events.tree import Tree
from tb_tidy_plugin.trace.columns import ABSENT, Category, EventTable, Mask, Numbers, Rows
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where

_Names: TypeAlias = tuple[str, ...]

NOT_IN_LOOPS = r"^ProfilerStep#|^Optimizer\.|^autograd::|^torch/_tensor\.py\(\d+\): backward$"
"""Steps, optimizers and backward passes: no loop that a rule searches for contains one."""

SLICE = "aten::slice"
STEADY = 0.75  # of an index's moves: inner loops begin again, conditions skip
FEWEST_MOVES = 3  # fewer may go one way by chance
MOST_TURNS = 8  # picks from equal tensors in one body

BUILT_IN = "<built-in "


class LoopLimits(msgspec.Struct, frozen=True):
    """Conditions of a loop.

    Attributes:
        never: sorted rows of events that no group contains.
        largest: most operators in a group.
        shortest: fewest groups in a loop.
    """

    never: Rows
    largest: int
    shortest: int


class Loop(msgspec.Struct, frozen=True):
    """Groups of successive calls in one body.

    Attributes:
        groups: rows of the calls of each group; the last one is cut to what resembles another group, since later calls
            may come after the loop.
        kinds: the sequences of names that occur as groups, with their counts, most frequent first.
    """

    groups: tuple[tuple[int, ...], ...]
    kinds: tuple[tuple[_Names, int], ...]

    @property
    def calls(self) -> tuple[int, ...]:
        """Rows of all calls, in order."""
        return tuple(row for group in self.groups for row in group)

    @property
    def alike(self) -> float:
        """Share of the groups that are equal to another one."""
        return sum(count for _, count in self.kinds if count > 1) / len(self.groups)


class Movement(msgspec.Struct, frozen=True):
    """Movement of an index through a loop.

    Attributes:
        places: number of successive places that it stops at.
        stride: the step of most of its moves, negative if it falls, 0 if it only goes one way.
        width: number of elements picked at each place: 1, or the length of a slice.
    """

    places: int
    stride: int
    width: int


def loops_in(
    body: Sequence[int], starts: Container[int], fits: Callable[[int, int], bool], name: Callable[[int], str]
) -> Iterator[Loop]:
    """Runs of groups in `body`, each group begun by one of `starts`.

    A group that does not fit ends a run; `fits` gets its first position in `body` and the one after it.
    """
    at = [position for position, row in enumerate(body) if row in starts]
    groups: list[tuple[int, ...]] = []
    kinds: list[_Names] = []
    for begin, end in pairwise([*at, len(body)]):
        if end < len(body) and fits(begin, end):
            groups.append(tuple(body[begin:end]))
            kinds.append(tuple(name(row) for row in groups[-1]))
            continue
        longest = max(map(len, kinds), default=1)
        length, kind = _last_group([name(row) for row in body[begin : begin + longest]], kinds)
        if not fits(begin, begin + length):
            length, kind = 1, (name(body[begin]),)
        if fits(begin, begin + length):
            groups.append(tuple(body[begin : begin + length]))
            kinds.append(kind)
        if groups:
            yield _loop(groups, kinds)
        groups, kinds = [], []


def _last_group(names: Sequence[str], kinds: Iterable[_Names]) -> tuple[int, _Names]:
    """The number of `names` after the last start that still belong to it, and the kind of that group.

    They belong to it while they match more than half of a kind; else the start stands alone.
    """
    common = [(sum(1 for _ in takewhile(_is_pair, zip(names, kind, strict=False))), kind) for kind in set(kinds)]
    good = [(length, kind) for length, kind in common if 2 * length > len(kind)]
    return max(good, key=lambda found: (found[0], -len(found[1])), default=(1, tuple(names[:1])))


def _is_pair(names: _Names) -> bool:
    return names[0] == names[1]


def _loop(groups: Sequence[tuple[int, ...]], kinds: Sequence[_Names]) -> Loop:
    """A loop of `groups`, without odd ones before it: unlike all others, and begun unlike most."""
    counts = Counter(kinds)
    usual = counts.most_common(1)[0][0]
    first = next(at for at, kind in enumerate(kinds) if counts[kind] > 1 or kind[0] == usual[0])
    return Loop(tuple(groups[first:]), tuple(Counter(kinds[first:]).most_common()))


def movement_of(picks: Iterable[tuple[str, Inputs]], least: int) -> Movement | None:
    """The movement of the index that moves most, from names and inputs of `aten::select` and `aten::slice`.

    Indices of different tensors, distinguished by their shapes, and of different dimensions are separate; slices count
    by their start. An index must take on at least `least` values: fewer, repeated ones are the columns of a table. None
    if no index was recorded (`Concrete Inputs`); 0 places if none moves.
    """
    indices: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for name, given in picks:
        dimension, start, end = (given.scalar(position) for position in (1, 2, 3))
        if start.lstrip("-").isdigit():
            width = int(end) - int(start) if name == SLICE and end.lstrip("-").isdigit() else 1
            indices.setdefault((name, str(given.dims[:1]), dimension), []).append((int(start), width))
    series = (values for values in indices.values() if len({start for start, _ in values}) >= least)
    moving = [movement for values in series if (movement := _movement(values)) is not None]
    return max(moving, key=lambda movement: movement.places, default=Movement(0, 0, 1)) if indices else None


def _movement(series: Sequence[tuple[int, int]]) -> Movement | None:
    """The first steady movement of every, every second, … index, since a body may pick from equal tensors in turns."""
    width = Counter(width for _, width in series).most_common(1)[0][0]
    for turns in range(1, MOST_TURNS + 1):
        places, stride, steadiness = _stops([start for start, _ in series[::turns]])
        if steadiness >= STEADY:
            return Movement(places, stride, width)
    return None


def _stops(indices: Sequence[int]) -> tuple[int, int, float]:
    """Number of places without repetitions (a body may reuse its index), stride, and its steadiness (0 to 1)."""
    places = [index for index, _ in groupby(indices)]
    moves = [after - before for before, after in pairwise(places)]
    if len(moves) < FEWEST_MOVES:
        return 0, 0, 0.0
    stride, count = Counter(moves).most_common(1)[0]
    steadiness = count / len(moves)
    goes_one_way = all(move > 0 for move in moves) or all(move < 0 for move in moves)
    return len(places), stride if steadiness >= STEADY else 0, 1.0 if goes_one_way else steadiness


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
