"""Matrix products: the operators that multiply matrices, and the sizes of those."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from tb_tidy_plugin.profile.inputs import BYTES_PER_ELEMENT, Inputs, Shape
from tb_tidy_plugin.torchfacts import aten

FACTORS = aten.by_name("product", {"mm": 0, "bmm": 0, "linear": 0, "addmm": 1, "baddbmm": 1})
"""Operators that multiply matrices, and the position of the left factor; the right one follows it."""


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
