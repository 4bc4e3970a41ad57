"""What operators were called with, each distinct set of inputs once."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import Inputs, known_inputs
from tb_tidy_plugin.trace.columns import Category, EventTable, Numbers, Rows
from tb_tidy_plugin.trace.strings import NumberTable

Shapes = tuple[tuple[int, ...], ...]
"""Shape per input; empty for what is no tensor, and for a list of tensors, as torch prints them."""


@dataclass(frozen=True, slots=True)
class Signatures:
    """Distinct inputs, and which call has which.

    Attributes:
        number: for each of the rows asked for, its position in `inputs`.
        inputs: distinct inputs, strides left out; the first ones are empty, for calls of which nothing was recorded.
        shape_number: for each of `inputs`, its position in `shapes`.
        shapes: distinct shapes.
    """

    number: Numbers
    inputs: tuple[Inputs, ...]
    shape_number: Numbers
    shapes: tuple[Shapes, ...]


def signatures_of(table: EventTable, rows: Rows) -> Signatures:
    """What the calls `rows` were made with; only operators have inputs."""
    known = [msgspec.structs.replace(each, strides=[]) for each in known_inputs(table)]
    distinct = NumberTable[bytes]().numbers(map(msgspec.json.encode, known), len(known))
    inputs = tuple(known[at] for at in np.unique(distinct, return_index=True)[1].tolist())
    number = np.where(table.category[rows] == Category.OPERATOR, distinct[table.inputs[rows]], np.int32(0))
    shapes = NumberTable[Shapes]()
    shape_number = shapes.numbers(map(flat_shapes, inputs), len(inputs))
    return Signatures(number, inputs, shape_number, shapes.values())


def flat_shapes(inputs: Inputs) -> Shapes:
    """Shapes as torch groups by them: a list of tensors counts as no tensor."""
    return tuple(
        tuple(size for size in shape if isinstance(size, int)) if all(isinstance(size, int) for size in shape) else ()
        for shape in inputs.dims
    )
