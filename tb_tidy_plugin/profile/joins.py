"""Operators that join tensors, and the tensors of each call."""

from __future__ import annotations

from math import prod

import msgspec

from tb_tidy_plugin.profile.inputs import Inputs, Shape
from tb_tidy_plugin.torchfacts import aten

CAT = "aten::cat"
STACK = "aten::stack"
JOINS = aten.names("known", "cat column_stack concat concatenate dstack hstack row_stack stack vstack")
"""Operators that join tensors, all of which call `aten::cat`."""


class Join(msgspec.Struct, frozen=True):
    """One call that joins tensors.

    Attributes:
        row: the operator that no other operator runs.
        dim: the dimension along which it joins.
        piece, result: shapes of its last input and of its result.
        rests: the result's shape without its last and without its first input.
    """

    row: int
    dim: int
    piece: Shape
    result: Shape
    rests: tuple[Shape, ...]


def join_of(row: int, inputs: Inputs, *, is_stack: bool) -> Join | None:
    """The join of an `aten::cat` or `aten::stack`; None if the shapes were not recorded."""
    shapes = [shape for shape in inputs.dims[0] if isinstance(shape, tuple)] if inputs.dims else []
    parts = [shape for shape in shapes if prod(shape)]  # empty ones may have any shape
    if not parts or len({len(shape) for shape in parts}) > 1 or not (parts[-1] or is_stack):
        return None
    dim = next(iter(inputs.integers(1)), 0) % (len(parts[-1]) + is_stack)
    if is_stack:
        parts = [(*shape[:dim], 1, *shape[dim:]) for shape in parts]
    piece, lengths = parts[-1], [shape[dim] for shape in parts]
    without = [sum(lengths) - lengths[-1], sum(lengths) - lengths[0]] if len(parts) > 1 else []
    result, *rests = ((*piece[:dim], length, *piece[dim + 1 :]) for length in (sum(lengths), *without))
    return Join(row, dim, piece, result, tuple(rests))
