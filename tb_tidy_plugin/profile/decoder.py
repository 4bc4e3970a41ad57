"""Pieces of decoder models written out in single operators: RMSNorm, rotary embedding, gated activation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.profile.intervals import positions_of_each
from tb_tidy_plugin.profile.model_work import of_the_model
from tb_tidy_plugin.profile.pointwise import is_passing
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten

PieceName: TypeAlias = Literal["RMSNorm", "Rotary embedding", "Gated activation"]

_CASTS = aten.names("known", "_to_copy to type_as")
_ACTIVATIONS = aten.names("pointwise", "gelu silu")
_PRODUCTS = aten.names("known", "addmm linear matmul mm")
CENTRES = aten.names("pointwise", "neg rsqrt") | _ACTIVATIONS
_BEFORE, _AFTER = 5, 5  # a piece's most operators before and after its centre, and some to find its end


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
