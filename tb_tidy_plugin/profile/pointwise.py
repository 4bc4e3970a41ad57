"""Pointwise operators in a row: each computes every element of its result from the elements at that place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import prod

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import MOST_ANSWERS, asked_once, numbers_where

COMPARISONS = aten.names(
    "pointwise",
    """
    eq ge greater greater_equal gt isfinite isinf isnan isneginf isposinf le less less_equal logical_and logical_not
    logical_or logical_xor lt ne not_equal signbit
    """,
)
"""Operators whose results have one byte per element, whatever they compare."""

QUICKEST = 0.25  # of a chain's operators only move bytes; the others also compute
ARITHMETIC_LEFT = 0.5  # of it, since a fused loop computes while it waits for memory; measured on a CPU

_NOT_OURS = (r"^Optimizer\.", r"^Torch-Compiled Region", r"^## Call CompiledFxGraph", r"^enumerate\(DataLoader\)#")
"""Events around an optimizer's update, already compiled code, or a worker's own work."""


class Chain(msgspec.Struct, frozen=True):
    """Successive pointwise operators, with nothing but views, constants and casts in between.

    Attributes:
        operators: their rows, in order.
        names: theirs, as recorded without overload.
        sizes: the shape of each one's result.
        shape: the largest of these, which the others can be broadcast to.
        moved_bytes: bytes that the operators read and write together.
        least_bytes: those of one fused operator: one tensor in, one out.
        most_bytes: the same, if each intermediate result were used once and all else came from outside.
    """

    operators: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[Shape, ...]
    shape: Shape
    moved_bytes: int
    least_bytes: int
    most_bytes: int

    @property
    def restarts(self) -> int:
        """Number of results that are smaller than the one before, and thus were not made from it."""
        counts = [prod(size) for size in self.sizes]
        return sum(after < before for before, after in pairwise(counts))

    @property
    def period(self) -> int:
        """The length of the shortest sequence of names and sizes that the chain repeats from its first to its last."""
        calls = list(zip(self.names, self.sizes, strict=True))
        return next(length for length in range(1, len(calls) + 1) if calls[length:] == calls[:-length])


class _Call(msgspec.Struct, frozen=True):
    """One operator: its row and name, the shape of its result, and the bytes that it reads and writes."""

    row: int
    name: str
    size: Shape
    read_bytes: int
    written_bytes: int


def pointwise_chains(profile: Profile, shortest: int) -> Iterator[Chain]:
    """The chains of at least `shortest` operators that user code runs in its forward pass, in row order.

    Excludes operators inside other operators: the backward pass, and composite operators. Results of a single element
    neither count nor interrupt.
    """
    rows, numbers = _numbered(profile)
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    long = counts >= shortest
    runs = [rows[begin : begin + count] for begin, count in zip(first[long], counts[long], strict=True)]
    given = iter(profile.inputs_of(np.concatenate(runs)) if runs else [])
    for run in runs:
        calls = [_call(profile, row, next(given)) for row in run.tolist()]
        yield from (_chain(part) for part in _fitting(calls) if len(part) >= shortest)


def _numbered(profile: Profile) -> tuple[Rows, Rows]:
    """The pointwise operators, and a number for each that changes where another operator comes in between."""
    table = profile.table
    rows = np.flatnonzero(profile.calls.outermost)
    rows = rows[~_are(profile, rows, is_passing)]
    ours = _are(profile, rows, is_pointwise)
    ours[ours] = ~_is_elsewhere(profile, rows[ours])
    step = profile.steps.index_of(table.start_ns[rows])
    breaks = ~ours
    breaks[1:] |= (np.diff(table.thread[rows]) != 0) | (np.diff(step) != 0)
    numbers: Rows = np.cumsum(breaks)
    return rows[ours], numbers[ours]


def _are(profile: Profile, rows: Rows, test: Callable[[str], bool]) -> Mask:
    found: Mask = among(profile.table.name[rows], numbers_where(profile.table.names, asked_once(test, MOST_ANSWERS)))
    return found


def is_passing(name: str) -> bool:
    """True if it makes a view, a constant or a cast, in place or not: a compiler merges these into their neighbours."""
    kinds = aten.operator(aten.without_writing(aten.without_overload(name))).kinds
    is_constant, is_view = "factory" in kinds, "shares" in kinds and "known" in kinds
    return (is_constant or is_view) and kinds.isdisjoint({"product", "random"})


def is_pointwise(name: str) -> bool:
    """True if it computes each element of its result from the elements at that place, and does not just pass them."""
    return aten.is_a("pointwise", name) and not is_passing(name)


def _is_elsewhere(profile: Profile, rows: Rows) -> Mask:
    found = np.zeros(len(rows), np.bool_)
    for pattern in _NOT_OURS:
        spans = profile.matching(pattern, Category.ANNOTATION, Category.OPERATOR)
        found |= profile.covering(rows, spans) != ABSENT
    return found


def _call(profile: Profile, row: int, inputs: Inputs) -> _Call | None:
    """The call; None if the shapes were not recorded, or cannot be broadcast."""
    tensors = [
        (shape, BYTES_PER_ELEMENT.get(dtype, 1))
        for at, dtype in enumerate(inputs.dtypes)
        if (shape := inputs.shape(at)) is not None
    ]
    try:
        size = np.broadcast_shapes(*(shape for shape, _ in tensors))
    except ValueError:
        return None
    if not tensors:
        return None
    name = profile.name(row)
    width = 1 if name in COMPARISONS else max(width for shape, width in tensors if len(shape) == _rank(tensors))
    read = sum(prod(shape) * width for shape, width in tensors if shape)
    return _Call(row, name, tuple(map(int, size)), read, prod(size) * width)


def _rank(tensors: Sequence[tuple[Shape, int]]) -> int:
    return max(len(shape) for shape, _ in tensors)


def _fitting(calls: Sequence[_Call | None]) -> Iterator[list[_Call]]:
    """The calls, cut where a result cannot be broadcast to those before it."""
    part: list[_Call] = []
    largest: Shape = ()
    for call in calls:
        if call is not None and prod(call.size) <= 1:
            continue
        wider = None if call is None else _wider(largest, call.size)
        if wider is None:
            yield part
            part, wider = [], () if call is None else call.size
        part += [] if call is None else [call]
        largest = wider
    yield part


def _wider(one: Shape, other: Shape) -> Shape | None:
    """The one of two shapes that the other can be broadcast to."""
    try:
        both = tuple(map(int, np.broadcast_shapes(one, other)))
    except ValueError:
        return None
    return both if both in (one, other) else None


def _chain(calls: Sequence[_Call]) -> Chain:
    read, written = sum(call.read_bytes for call in calls), sum(call.written_bytes for call in calls)
    largest = max(calls, key=lambda call: prod(call.size))
    last = calls[-1].written_bytes
    least = largest.written_bytes + last
    return Chain(
        operators=tuple(call.row for call in calls),
        names=tuple(call.name for call in calls),
        sizes=tuple(call.size for call in calls),
        shape=largest.size,
        moved_bytes=read + written,
        least_bytes=least,
        most_bytes=max(read - (written - last) + last, least),
    )


def part_left(profile: Profile, chain: Chain, on_device: bool) -> tuple[float, float]:
    """Part of the time that one operator leaves of a chain that waits for memory: expected, and at best."""
    least = max(chain.least_bytes / chain.moved_bytes, 1 / len(chain.operators))
    moved = max((chain.least_bytes + chain.most_bytes) / 2 / chain.moved_bytes, least)
    if on_device:
        return moved, least
    full = [row for row, size in zip(chain.operators, chain.sizes, strict=True) if prod(size) == prod(chain.shape)]
    times = sorted(profile.duration_ns(row) for row in full)
    quickest = times[int(QUICKEST * len(times))]
    computed = ARITHMETIC_LEFT * sum(max(time - quickest, 0) for time in times) / sum(times)
    return computed + (1 - computed) * moved, least
