"""Inputs of operators, each distinct set once."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import Inputs, Shape, plain_shape
from tb_tidy_plugin.trace.columns import Category, EventTable, Numbers, Rows
from tb_tidy_plugin.trace.strings import NumberTable, asked_once

Shapes: TypeAlias = tuple[Shape, ...]
"""Shape per input; empty for other inputs, and for a list of tensors, as torch prints them."""


class DistinctInputs(msgspec.Struct, frozen=True):
    """The distinct inputs of a table's operators.

    Attributes:
        of_text: for each of the table's `input_texts`, the position of its inputs in `inputs`.
        inputs: distinct inputs without strides; the first ones are empty, for calls without recorded inputs.
        shape_number: for each of `inputs`, its position in `shapes`.
        shapes: distinct shapes.
    """

    of_text: Numbers
    inputs: tuple[Inputs, ...]
    shape_number: Numbers
    shapes: tuple[Shapes, ...]


class Signatures(DistinctInputs, frozen=True):
    """The same, and the inputs of some calls; `number` is the position in `inputs` of those of each call."""

    number: Numbers


def signatures_of(table: EventTable, rows: Rows, distinct: DistinctInputs) -> Signatures:
    """The inputs of the calls `rows` among those of the table; only operators have any."""
    number = np.where(table.category[rows] == Category.OPERATOR, distinct.of_text[table.inputs[rows]], np.int32(0))
    return Signatures(distinct.of_text, distinct.inputs, distinct.shape_number, distinct.shapes, number)


def distinct_inputs(known: tuple[Inputs, ...]) -> DistinctInputs:
    """The distinct ones of a table's `known_inputs`."""
    distinct = NumberTable[Inputs]()
    of_text = distinct.numbers(map(asked_once(_without_strides), known), len(known))
    kept = distinct.values()
    shapes = NumberTable[Shapes]()
    shape_number = shapes.numbers(map(asked_once(flat_shapes), kept), len(kept))
    return DistinctInputs(of_text, kept, shape_number, shapes.values())


def _without_strides(inputs: Inputs) -> Inputs:
    return msgspec.structs.replace(inputs, strides=())


def flat_shapes(inputs: Inputs) -> Shapes:
    """Shapes as torch groups by them: a list of tensors does not count."""
    return tuple(plain_shape(shape) or () for shape in inputs.dims)
