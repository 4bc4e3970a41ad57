"""Operators that join tensors, and what each of their calls joins."""

from __future__ import annotations

from math import prod

import msgspec

from tb_tidy_plugin import aten
from tb_tidy_plugin.profile.inputs import Inputs, Shape

CAT = "aten::cat"
STACK = "aten::stack"
JOINS = aten.names("known", "cat column_stack concat concatenate dstack hstack row_stack stack vstack")
"""Operators that join tensors, all by `aten::cat` in the end."""


class Join(msgspec.Struct, frozen=True):
    """One call that joins tensors.

    Attributes:
        row: the operator that no other operator runs.
        dim: along which dimension.
        piece, result: shapes of its last input and of what it makes.
        rests: what the result is without its last and without its first input.
    """

    row: int
    dim: int
    piece: Shape
    result: Shape
    rests: tuple[Shape, ...]


def join_of(row: int, inputs: Inputs, *, is_stack: bool) -> Join | None:
    """What `aten::cat` or `aten::stack` joins; None where the shapes were not recorded."""
    shapes = [shape for shape in inputs.dims[0] if isinstance(shape, tuple)] if inputs.dims else []
    parts = [shape for shape in shapes if prod(shape)]  # empty ones may be of any shape
    if not parts or len({len(shape) for shape in parts}) > 1 or not (parts[-1] or is_stack):
        return None
    dim = next(iter(inputs.integers(1)), 0) % (len(parts[-1]) + is_stack)
    if is_stack:
        parts = [(*shape[:dim], 1, *shape[dim:]) for shape in parts]
    piece, lengths = parts[-1], [shape[dim] for shape in parts]
    without = [sum(lengths) - lengths[-1], sum(lengths) - lengths[0]] if len(parts) > 1 else []
    result, *rests = ((*piece[:dim], length, *piece[dim + 1 :]) for length in (sum(lengths), *without))
    return Join(row, dim, piece, result, tuple(rests))
