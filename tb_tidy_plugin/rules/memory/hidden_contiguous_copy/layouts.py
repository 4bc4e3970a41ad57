"""Copies that change a tensor's memory layout, and their readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.calls import rows_of
from tb_tidy_plugin.profile.events.inputs import Inputs, Shape, tensor_bytes
from tb_tidy_plugin.profile.host.callers import of_the_model
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.work.pointwise import is_pointwise
from tb_tidy_plugin.torchfacts import aten

Layout: TypeAlias = Literal["transposed", "sliced", "expanded", "not recorded"]

CONTIGUOUS = "aten::contiguous"
CLONE = "aten::clone"
IN_ORDER = frozenset({CONTIGUOUS, CLONE})
_COPIES = IN_ORDER | aten.names("shares", "flatten reshape")
"""Operators that copy a tensor if its layout is not the required one."""

ROW_MAJOR = frozenset({"0", ""})
"""Memory formats, as numbers, other than channels-last; empty if none was given."""

ANY_LAYOUT = aten.names("known", "_to_copy addmm baddbmm bmm copy_ mean mm scaled_dot_product_attention sum to")
"""Operators that read a tensor in any layout, like pointwise ones: copies, products of BLAS, sums, fused attention."""

PRODUCTS_OF_ANY_LAYOUT = aten.by_name("product", {"matmul": 3})
"""Operators that do so up to this number of dimensions; with more dimensions they must merge some."""

OF_SOME_LAYOUTS = aten.names("view", "_reshape_alias _unsafe_view as_strided view view_as view_as_complex")
"""Views that cannot be made of a tensor in any layout."""

_REACH = 16  # operators after a copy that are searched for its reader


class LayoutCopy(msgspec.Struct, frozen=True):
    """A copy into another layout.

    Attributes:
        row: the operator that no other operator runs.
        shape, dtype, size: of the tensor, with its bytes.
        strides: those of the copied tensor, empty if they were not recorded.
        layout: layout of the copied tensor.
        reader: the operator that reads the copy, empty if none was found near it.
        is_needed: True if the reader may need it; False if it reads a tensor in any layout.
    """

    row: int
    shape: Shape
    dtype: str
    size: int
    strides: Shape
    layout: Layout
    reader: str
    is_needed: bool


def layout_copies(profile: Profile, least_bytes: float) -> Iterator[LayoutCopy]:
    """The model's copies of at least `least_bytes` that no other operator makes for itself.

    Without copies into and from channels-last, which are made once for many convolutions, and without those that are
    written to, which must be copies.
    """
    outer = of_the_model(profile, profile.calls.among(profile.named(*_COPIES)))
    copies = profile.named("aten::copy_")
    copies = copies[profile.inside(outer)[copies]]
    above = outer[np.searchsorted(outer, copies) - 1]
    for row, given, copied in zip(above.tolist(), profile.inputs_of(above), profile.inputs_of(copies), strict=True):
        size = tensor_bytes(copied.shape(1) or (0,), copied.dtype(1)) or 0
        if size >= least_bytes and copied.dtype(0) == copied.dtype(1) and _is_of_layout(profile, row, given, copied):
            yield from _copy(profile, row, copied, size)


def _is_of_layout(profile: Profile, row: int, given: Inputs, copied: Inputs) -> bool:
    """True if the copy is made for the layout: a plain `clone` keeps it, and wants the copy itself."""
    if profile.name(row) == CLONE and given.scalar(1) != "0":
        return False
    if profile.name(row) == CONTIGUOUS and given.scalar(1) not in ROW_MAJOR:
        return False
    shape, (to, source) = copied.shape(1) or (), (_strides(copied, position) for position in (0, 1))
    return not source or not (to == source or is_channels_last(shape, source) or is_channels_last(shape, to))


def _copy(profile: Profile, row: int, copied: Inputs, size: int) -> Iterator[LayoutCopy]:
    shape, strides = copied.shape(1) or (), _strides(copied, 1)
    reader, is_needed = "", True
    if profile.name(row) in IN_ORDER:
        found = _reader(profile, row, shape)
        if found is not None:
            reader, inputs = found
            if aten.is_a("in_place", reader) and inputs.shape(0) == shape:
                return
            is_needed = not _reads_any_layout(reader, shape)
    else:
        reader = "aten::view"
    yield LayoutCopy(row, shape, copied.dtype(1), size, strides, layout_of(shape, strides), reader, is_needed)


def _reader(profile: Profile, row: int, shape: Shape) -> tuple[str, Inputs] | None:
    """The first operator after `row` that gets a tensor of this shape and does not only make a view of it."""
    after = profile.operators_after(row, _REACH)
    for following, inputs in zip(after, profile.inputs_of(rows_of(after)), strict=True):
        name = profile.name(following)
        tensors = [inputs.shape(position) for position in range(len(inputs.dtypes))]
        if shape in tensors and not (aten.is_a("view", name) and name not in OF_SOME_LAYOUTS):
            return name, inputs
    return None


def _reads_any_layout(reader: str, shape: Shape) -> bool:
    most = PRODUCTS_OF_ANY_LAYOUT.get(reader, 0)
    return is_pointwise(reader) or reader in ANY_LAYOUT or len(shape) <= most


def _strides(inputs: Inputs, position: int) -> Shape:
    found = inputs.strides[position] if position < len(inputs.strides) else ()
    return tuple(stride for stride in found if isinstance(stride, int))


def layout_of(shape: Shape, strides: Shape) -> Layout:
    """The layout of a tensor that is not laid out row by row."""
    if not strides:
        return "not recorded"
    steps = [stride for size, stride in zip(shape, strides, strict=True) if size > 1]
    if 0 in steps:
        return "expanded"
    return "sliced" if sorted(steps, reverse=True) == steps else "transposed"


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True if images or volumes are laid out pixel by pixel, with the channels of each side by side."""
    if len(shape) not in {4, 5} or len(strides) != len(shape) or shape[1] == 1:
        return False
    return strides[1] == 1 and strides[-1] == shape[1] and list(strides[2:]) == sorted(strides[2:], reverse=True)
