"""Operators that multiply matrices or join tensors, and the sizes of those."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import msgspec

from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.torchfacts import aten

FACTORS = aten.by_name("product", {"mm": 0, "bmm": 0, "linear": 0, "addmm": 1, "baddbmm": 1})
"""Operators that multiply matrices, and the position of the left factor; the right one follows it."""

CAT = "aten::cat"
STACK = "aten::stack"
JOINS = aten.names("known", "cat column_stack concat concatenate dstack hstack row_stack stack vstack")
"""Operators that join tensors, all of which call `aten::cat`."""


@dataclass(frozen=True, slots=True)
class Product:
    """One call: `batch` times an `m` × `k` matrix by a `k` × `n` matrix, both of `dtype` (the trace's C++ name).

    Calls with the same sizes are equal, whichever operator in `row` makes them.
    """

    row: int = field(compare=False)
    batch: int
    m: int
    k: int
    n: int
    dtype: str

    def __str__(self) -> str:
        """The sizes as a user would write them, without the operator."""
        batch = f"{self.batch} × " if self.batch > 1 else ""
        return f"{batch}{self.m}×{self.k} by {self.k}×{self.n}"

    def padded(self, multiple: int) -> Product:
        """The product with each size rounded up to the next multiple."""
        m, k, n = (-(-size // multiple) * multiple for size in (self.m, self.k, self.n))
        return replace(self, m=m, k=k, n=n)

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.k * self.n

    @property
    def bytes(self) -> int:
        """Least bytes read and written: each factor and the result once."""
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return BYTES_PER_ELEMENT[self.dtype] * self.batch * elements


def product_of(row: int, name: str, inputs: Inputs) -> Product | None:
    """The product that the operator `name` computes; None if its shapes were not recorded or do not form one."""
    left = FACTORS[name]
    dtype = inputs.dtype(left)
    first, second = inputs.shape(left), inputs.shape(left + 1)
    if first is None or second is None or dtype != inputs.dtype(left + 1) or dtype not in BYTES_PER_ELEMENT:
        return None
    if name == "aten::linear":
        return _linear(row, first, second, dtype)
    if len(first) < 2 or len(first) != len(second) or first[-1] != second[-2] or first[:-2] != second[:-2]:
        return None
    return _filled(Product(row, prod(first[:-2]), first[-2], first[-1], second[-1], dtype))


def _linear(row: int, inputs: Shape, weight: Shape, dtype: str) -> Product | None:
    if len(weight) != 2 or not inputs or inputs[-1] != weight[-1]:
        return None
    return _filled(Product(row, 1, prod(inputs[:-1]), inputs[-1], weight[0], dtype))


def _filled(product: Product) -> Product | None:
    return product if product.flops else None


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
