"""Pointwise operators in a row: each computes every element of its result from the elements at that place.

Pieces of decoder models are made of them: RMSNorm, rotary embedding, gated activation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.profile.events.intervals import positions_of_each
from tb_tidy_plugin.profile.host.callers import of_the_model
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

PieceName: TypeAlias = Literal["RMSNorm", "Rotary embedding", "Gated activation"]

_CASTS = aten.names("known", "_to_copy to type_as")
_ACTIVATIONS = aten.names("pointwise", "gelu silu")
_PRODUCTS = aten.names("known", "addmm linear matmul mm")
CENTRES = aten.names("pointwise", "neg rsqrt") | _ACTIVATIONS
_BEFORE, _AFTER = 5, 5  # a piece's most operators before and after its centre, and some to find its end


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


class DecoderPiece(msgspec.Struct, frozen=True):
    """One call of a piece.

    Attributes:
        name: kind of the piece.
        operators: the rows of its operators, in order, including casts, without products.
        shape: of the tensor that it normalises, rotates or gates.
        moved_bytes: bytes that these operators read and write together. least_bytes: those of one fused operator.
    """

    name: PieceName
    operators: tuple[int, ...]
    shape: Shape
    moved_bytes: int
    least_bytes: int


class PieceCall(msgspec.Struct, frozen=True):
    """One operator: its row, its name without namespace and overload, and its inputs."""

    row: int
    name: str
    inputs: Inputs

    @property
    def shapes(self) -> list[Shape]:
        found = (self.inputs.shape(at) for at in range(len(self.inputs.dtypes)))
        return [shape for shape in found if shape is not None]

    @property
    def shape(self) -> Shape:
        """The first tensor's shape."""
        return self.shapes[0] if self.shapes else ()

    @property
    def width(self) -> int:
        """Bytes per element of its first input."""
        return BYTES_PER_ELEMENT.get(self.inputs.dtype(0), 4)

    def is_on(self, *shapes: Shape) -> bool:
        """True if its tensors have these shapes, in any order."""
        return sorted(self.shapes) == sorted(shapes)


def decoder_pieces(profile: Profile) -> Iterator[DecoderPiece]:
    """The pieces that the model's code runs operator by operator, in row order on each thread."""
    for calls, at in calls_around(profile, CENTRES, _BEFORE, _AFTER):
        piece = _piece(calls, at)
        if piece is not None:
            yield piece


def calls_around(
    profile: Profile, centres: Collection[str], before: int, after: int
) -> Iterator[tuple[Sequence[PieceCall], int]]:
    """The operators around each operator of the model's code with one of these names, and its position among them.

    Without views and constants; in row order on each thread.
    """
    rows = np.flatnonzero(profile.calls.outermost)
    wanted = frozenset(of_the_model(profile, profile.calls.among(profile.named(*centres))).tolist())
    for here in positions_of_each(profile.table.thread[rows]) if wanted else ():
        line = [row for row in rows[here].tolist() if _counts(profile, row)]
        for at in (at for at, row in enumerate(line) if row in wanted):
            near = line[max(at - before, 0) : at + after + 1]
            calls = [PieceCall(row, aten.short_name(profile.name(row)), profile.inputs(row)) for row in near]
            yield calls, min(at, before)


def _counts(profile: Profile, row: int) -> bool:
    """True if the operator does more than make a view or a constant."""
    name = profile.name(row)
    if not is_passing(name):
        return True
    return name in _CASTS and len(profile.device_activity_of(row)) > 0


def _piece(calls: Sequence[PieceCall], at: int) -> DecoderPiece | None:
    match calls[at].name:
        case "rsqrt":
            return _normalisation(calls, at)
        case "neg":
            return _rotary(calls, at)
        case _:
            return _gate(calls, at)


def _normalisation(calls: Sequence[PieceCall], at: int) -> DecoderPiece | None:
    """`x * rsqrt(mean(x ** 2) + eps)`, with optional casts around it and an optional weight behind it."""
    if at < 3 or at + 1 >= len(calls):
        return None
    square, mean, add, root, scale = calls[at - 3 : at + 2]
    shape = square.shape
    reduced = (*shape[:-1], 1)
    names = [call.name for call in (mean, add, scale)]
    fits = mean.shape == shape and reduced in add.shapes and root.shape == reduced and scale.is_on(shape, reduced)
    is_square = square.name in {"pow", "square"} or (square.name == "mul" and square.is_on(shape, shape))
    if len(shape) < 2 or " ".join(names) != "mean add mul" or not fits or not is_square:
        return None
    mine = [square, mean, add, root, scale]
    if at > 3 and _is_cast(calls[at - 4], shape):
        mine.insert(0, calls[at - 4])
    after = list(calls[at + 2 : at + 4])
    if after and _is_cast(after[0], shape):
        mine.append(after.pop(0))
    if after and after[0].name == "mul" and after[0].is_on(shape, shape[-1:]):
        mine.append(after[0])
    return _made("RMSNorm", mine, shape, inputs=1)


def _rotary(calls: Sequence[PieceCall], at: int) -> DecoderPiece | None:
    """`x * cos + cat(-x2, x1) * sin`."""
    half = calls[at].shape
    if not half or [call.name for call in calls[at + 1 : at + 2]] != ["cat"]:
        return None
    shape = (*half[:-1], 2 * half[-1])
    begin = at - 1 if at and calls[at - 1].name == "mul" else at
    mine = [*calls[begin : at + 2]]
    for call in calls[at + 2 : at + 5]:
        if call.name not in {"mul", "add"} or shape not in call.shapes:
            return None
        mine.append(call)
        if call.name == "add":
            break
    multiplied = [call for call in mine if call.name == "mul"]
    fits = len(multiplied) == 2 and all(shape in call.shapes for call in multiplied)
    return _made("Rotary embedding", mine, shape, inputs=1) if fits and mine[-1].is_on(shape, shape) else None


def _gate(calls: Sequence[PieceCall], at: int) -> DecoderPiece | None:
    """`silu(gate(x)) * up(x)`, where `up` may run before or in between."""
    shape = calls[at].shape
    after = list(calls[at + 1 : at + 3])
    if after and f"aten::{after[0].name}" in _PRODUCTS:
        after.pop(0)
    if len(shape) < 2 or not after or after[0].name != "mul" or not after[0].is_on(shape, shape):
        return None
    return _made("Gated activation", [calls[at], after[0]], shape, inputs=2)


def _is_cast(call: PieceCall, shape: Shape) -> bool:
    return f"aten::{call.name}" in _CASTS and call.shape == shape


def _made(name: PieceName, calls: Sequence[PieceCall], shape: Shape, inputs: int) -> DecoderPiece:
    """The piece with its bytes; one operator would read `inputs` tensors of its shape and write one."""
    moved = 0
    for at, call in enumerate(calls):
        if call.name == "cat":  # a list of tensors, without recorded dtypes
            moved += 2 * prod(shape) * calls[at - 1].width
            continue
        written = calls[at + 1].width if f"aten::{call.name}" in _CASTS and at + 1 < len(calls) else call.width
        result = prod(shape[:-1]) if call.name == "mean" else max(map(prod, call.shapes), default=0)
        moved += sum(map(prod, call.shapes)) * call.width + result * written
    last = calls[-1].width
    least = prod(shape) * (inputs * calls[0].width + last)
    return DecoderPiece(name, tuple(call.row for call in calls), shape, max(moved, least), least)
