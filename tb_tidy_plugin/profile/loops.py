"""Python loops, seen as groups of successive calls in one body.

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

from tb_tidy_plugin.profile.inputs import Inputs
from tb_tidy_plugin.trace.columns import Rows

_Names: TypeAlias = tuple[str, ...]

NOT_IN_LOOPS = r"^ProfilerStep#|^Optimizer\.|^autograd::|^torch/_tensor\.py\(\d+\): backward$"
"""Steps, optimizers and backward passes: no loop that a rule searches for contains one."""

SLICE = "aten::slice"
STEADY = 0.75  # of an index's moves: inner loops begin again, conditions skip
FEWEST_MOVES = 3  # fewer may go one way by chance
MOST_TURNS = 8  # picks from equal tensors in one body


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
