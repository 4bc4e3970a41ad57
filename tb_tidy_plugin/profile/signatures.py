"""What operators were called with, each distinct set of inputs once."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from tb_tidy_plugin.profile.inputs import Inputs
from tb_tidy_plugin.trace.columns import Category, EventTable, Numbers, Rows
from tb_tidy_plugin.trace.strings import NumberTable

Shapes = tuple[tuple[int, ...], ...]
"""Shape per input; empty for what is no tensor, and for a list of tensors, as torch prints them."""


SHAPES_KEY = b'"Input Dims"'


class _Texts(msgspec.Struct, gc=False):
    """The parts of an operator's args that say what it was called with, undecoded: few of them are distinct."""

    dims: msgspec.Raw = msgspec.field(name="Input Dims", default_factory=msgspec.Raw)
    dtypes: msgspec.Raw = msgspec.field(name="Input type", default_factory=msgspec.Raw)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default_factory=msgspec.Raw)


@dataclass(frozen=True, slots=True)
class Signatures:
    """Distinct inputs, and which call has which.

    Attributes:
        number: for each of the rows asked for, its position in `inputs`.
        inputs: distinct inputs, strides left out; empty ones where nothing was recorded.
        shape_number: for each of `inputs`, its position in `shapes`.
        shapes: distinct shapes.
    """

    number: Numbers
    inputs: tuple[Inputs, ...]
    shape_number: Numbers
    shapes: tuple[Shapes, ...]


def signatures_of(table: EventTable, rows: Rows) -> Signatures:
    """What the calls `rows` were made with; only operators have inputs."""
    texts = NumberTable[tuple[bytes, bytes, bytes]]()
    shapes = NumberTable[Shapes]()
    number = np.full(len(rows), texts.number((b"", b"", b"")), np.int32)
    if any(SHAPES_KEY in block for block in table.args.blocks):
        operators = np.flatnonzero(table.category[rows] == Category.OPERATOR)
        found = table.args.decoded(rows[operators], _Texts)
        parts = ((bytes(text.dims), bytes(text.dtypes), bytes(text.concrete)) for text in found)
        number[operators] = texts.numbers(parts, len(found))
    inputs = tuple(_inputs(*text) for text in texts.values())
    shape_number = shapes.numbers((flat_shapes(entry) for entry in inputs), len(inputs))
    return Signatures(number, inputs, shape_number, shapes.values())


def flat_shapes(inputs: Inputs) -> Shapes:
    """Shapes as torch groups by them: a list of tensors counts as no tensor."""
    return tuple(
        tuple(size for size in shape if isinstance(size, int)) if all(isinstance(size, int) for size in shape) else ()
        for shape in inputs.dims
    )


def _inputs(dims: bytes, dtypes: bytes, concrete: bytes) -> Inputs:
    keys = (b'"Input Dims"', b'"Input type"', b'"Concrete Inputs"')
    there = [key + b":" + text for key, text in zip(keys, (dims, dtypes, concrete), strict=True) if text]
    try:
        return msgspec.json.decode(b"{" + b",".join(there) + b"}", type=Inputs, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Inputs()
