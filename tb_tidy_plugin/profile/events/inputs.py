"""Inputs of an operator, as `record_shapes=True` writes them, and the distinct ones of a recording."""

from __future__ import annotations

import re
from typing import TypeAlias, TypeGuard

import msgspec
import numpy as np

from tb_tidy_plugin.system.decoders import decoder_of
from tb_tidy_plugin.trace.columns import Category, EventTable, Numbers, Rows
from tb_tidy_plugin.trace.recover import NOT_JSON
from tb_tidy_plugin.trace.strings import NumberTable, asked_once

Shape: TypeAlias = tuple[int, ...]
InputSizes: TypeAlias = tuple[int | Shape, ...]

INTEGERS = re.compile(r"-?\d{1,18}|\[-?\d{1,18}(, -?\d{1,18})*\]", re.ASCII)

Shapes: TypeAlias = tuple[Shape, ...]
"""Shape per input; empty for other inputs, and for a list of tensors, as torch prints them."""


class Inputs(msgspec.Struct, frozen=True, cache_hash=True):
    """Inputs of one operator call; all are empty if shapes were not recorded.

    Attributes:
        dims: shape per input; for a list of tensors, a tuple of shapes; empty for other inputs.
        dtypes: C++ names (`float`, `c10::Half`, `long int`), empty for an undefined tensor.
        concrete: scalars as text, empty for tensors.
    """

    dims: tuple[InputSizes, ...] = msgspec.field(name="Input Dims", default=())
    dtypes: tuple[str, ...] = msgspec.field(name="Input type", default=())
    strides: tuple[InputSizes, ...] = msgspec.field(name="Input Strides", default=())
    concrete: tuple[str, ...] = msgspec.field(name="Concrete Inputs", default=())

    def shape(self, position: int) -> Shape | None:
        """Shape of the tensor at `position`; None if it is not a tensor, is undefined or was not recorded."""
        if position >= len(self.dims) or not self.dtype(position):
            return None
        if self.dtype(position) in NOT_A_TENSOR:
            return None
        return plain_shape(self.dims[position])

    def dtype(self, position: int) -> str:
        """C++ name of the dtype at `position`, empty without one."""
        return self.dtypes[position] if position < len(self.dtypes) else ""

    def scalar(self, position: int) -> str:
        """The scalar at `position` as text, empty without one."""
        return self.concrete[position] if position < len(self.concrete) else ""

    def integers(self, position: int) -> Shape:
        """The integers at `position`, one or a list of them; empty without any."""
        text = self.scalar(position)
        return tuple(map(int, text.strip("[]").split(", "))) if INTEGERS.fullmatch(text) else ()


_INPUTS = decoder_of(Inputs, strict=False)


def known_inputs(table: EventTable) -> tuple[Inputs, ...]:
    """Inputs for each of `EventTable.input_texts`; empty inputs for invalid texts."""
    return tuple(map(asked_once(_decoded), table.input_texts))


def _decoded(text: str) -> Inputs:
    try:
        return _INPUTS.decode(text)
    except NOT_JSON:
        return Inputs()


def plain_shape(sizes: InputSizes) -> Shape | None:
    """The shape of a tensor, None for those of a list of tensors."""
    return sizes if _are_numbers(sizes) else None


def _are_numbers(sizes: InputSizes) -> TypeGuard[Shape]:
    return tuple not in map(type, sizes)  # half the time of a loop in Python


NOT_A_TENSOR = frozenset({"Scalar", "ScalarList", "TensorList", "GenericList", "None"})

BYTES_PER_ELEMENT = {
    "float": 4, "double": 8, "c10::Half": 2, "c10::BFloat16": 2, "long int": 8, "long": 8, "int": 4, "short int": 2,
    "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8, "c10::complex<double>": 16,
}  # fmt: skip

FLOATING = frozenset({"float", "double", "c10::Half", "c10::BFloat16"})

TORCH_DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16", "long int": "int64",
    "long": "int64", "int": "int32", "short int": "int16", "short": "int16", "signed char": "int8",
    "unsigned char": "uint8", "bool": "bool",
}  # fmt: skip
"""The trace's C++ names of dtypes as attributes of `torch`: the only dtype names that may go into a benchmark."""


def tensor_bytes(shape: Shape, dtype: str) -> int | None:
    """Bytes of a dense tensor, None for an unknown dtype."""
    size = BYTES_PER_ELEMENT.get(dtype)
    if size is None:
        return None
    for extent in shape:
        size *= extent
    return size


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
