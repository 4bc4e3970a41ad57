"""Inputs of operators, each distinct set once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import Inputs, Shape, known_inputs, plain_shape
from tb_tidy_plugin.trace.columns import Category, EventTable, Numbers, Rows
from tb_tidy_plugin.trace.strings import NumberTable

Shapes: TypeAlias = tuple[Shape, ...]
"""Shape per input; empty for other inputs, and for a list of tensors, as torch prints them."""


class Signatures(msgspec.Struct, frozen=True):
    """Distinct inputs, and the inputs of each call.

    Attributes:
        number: for each of the given rows, its position in `inputs`.
        inputs: distinct inputs without strides; the first ones are empty, for calls without recorded inputs.
        shape_number: for each of `inputs`, its position in `shapes`.
        shapes: distinct shapes.
    """

    number: Numbers
    inputs: tuple[Inputs, ...]
    shape_number: Numbers
    shapes: tuple[Shapes, ...]


def signatures_of(table: EventTable, rows: Rows, inputs: Sequence[Inputs] | None = None) -> Signatures:
    """The inputs of the calls `rows`; only operators have any. `inputs`: those of the table, if known."""
    known = [msgspec.structs.replace(each, strides=()) for each in (known_inputs(table) if inputs is None else inputs)]
    distinct = NumberTable[Inputs]()
    of_table = distinct.numbers(known, len(known))
    kept = distinct.values()
    number = np.where(table.category[rows] == Category.OPERATOR, of_table[table.inputs[rows]], np.int32(0))
    shapes = NumberTable[Shapes]()
    shape_number = shapes.numbers(map(flat_shapes, kept), len(kept))
    return Signatures(number, kept, shape_number, shapes.values())


def flat_shapes(inputs: Inputs) -> Shapes:
    """Shapes as torch groups by them: a list of tensors does not count."""
    return tuple(plain_shape(shape) or () for shape in inputs.dims)
