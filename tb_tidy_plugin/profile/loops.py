"""Python loops, seen as groups of calls that follow one another in one body.

A trace does not name loops. What it shows of one are the calls of its body, again and again: each time the call that
begins the body comes up, a new group begins. The body may hold conditions and other loops, so groups need not be equal;
how alike they are is for the reader of a `Loop` to judge.
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
"""Steps, optimizers and backward passes: no loop that a rule looks for holds one."""

SLICE = "aten::slice"
STEADY = 0.75  # of an index's moves: inner loops begin again, conditions leave out
FEWEST_MOVES = 3  # fewer go one way by chance
MOST_TURNS = 8  # picks from equal tensors in one body


class LoopLimits(msgspec.Struct, frozen=True):
    """What counts as a loop.

    Attributes:
        never: sorted rows of events that no group holds.
        largest: number of operators that a group may have.
        shortest: number of groups that a loop has at least.
    """

    never: Rows
    largest: int
    shortest: int


class Loop(msgspec.Struct, frozen=True):
    """Groups of calls that follow one another in one body.

    Attributes:
        groups: rows of the calls of each group; of the last one as many as are like another group, since what follows
            may come after the loop.
        kinds: the sequences of names that occur as groups, with their numbers, the most frequent one first.
    """

    groups: tuple[tuple[int, ...], ...]
    kinds: tuple[tuple[_Names, int], ...]

    @property
    def calls(self) -> tuple[int, ...]:
        """Rows of all calls, in order."""
        return tuple(row for group in self.groups for row in group)

    @property
    def alike(self) -> float:
        """Which part of the groups is equal to another one."""
        return sum(count for _, count in self.kinds if count > 1) / len(self.groups)


class Movement(msgspec.Struct, frozen=True):
    """How an index moves through a loop.

    Attributes:
        places: number of places that it stops at, one after the other.
        stride: by how much it grows (falls, if negative) in most of its moves, 0 where it just goes one way.
        width: how much is picked at each place: 1, or the length of a slice.
    """

    places: int
    stride: int
    width: int


def loops_in(
    body: Sequence[int], starts: Container[int], fits: Callable[[int, int], bool], name: Callable[[int], str]
) -> Iterator[Loop]:
    """Runs of groups in `body`, each group begun by one of `starts`.

    A group that does not fit, which `fits` tells from its first position in `body` and the one after it, ends a run.
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
    """How many of `names`, which follow the last start, still belong to it, and of which kind it then is.

    They do as far as they go along with a kind for more than half of it; else the start stands alone.
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

    Indices of different tensors, told apart by their shapes, and of different dimensions are looked at one by one; of
    slices the start counts. An index must take on at least `least` values: fewer ones, again and again, are the columns
    of a table. None where no index was recorded (`Concrete Inputs`); 0 places where none moves.
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
    """Number of places without repetitions (a body may use its index again), stride, and how steady it is (0 to 1)."""
    places = [index for index, _ in groupby(indices)]
    moves = [after - before for before, after in pairwise(places)]
    if len(moves) < FEWEST_MOVES:
        return 0, 0, 0.0
    stride, count = Counter(moves).most_common(1)[0]
    steadiness = count / len(moves)
    goes_one_way = all(move > 0 for move in moves) or all(move < 0 for move in moves)
    return len(places), stride if steadiness >= STEADY else 0, 1.0 if goes_one_way else steadiness
