"""Matrix products with their device time, by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tb_tidy_plugin.profile.inputs import BYTES_PER_ELEMENT
from tb_tidy_plugin.profile.products import Product

if TYPE_CHECKING:
    from tb_tidy_plugin.profile.profile import Profile


class RatedProduct(msgspec.Struct, frozen=True):
    """All calls of one product.

    Attributes:
        product: its sizes and dtype; its row is that of the first call.
        rows: the calls. time_ns: of the device work of all of them.
    """

    product: Product
    rows: tuple[int, ...]
    time_ns: int

    @property
    def flops_per_second(self) -> float:
        """Rate over all calls."""
        return self.product.flops * len(self.rows) / self.time_ns * 1e9

    @property
    def bytes_per_second(self) -> float:
        """Least bytes moved, over all calls."""
        return self.product.bytes * len(self.rows) / self.time_ns * 1e9

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.product.flops / self.product.bytes


def rated_products(profile: Profile) -> list[RatedProduct]:
    """The products of a profile that ran on a device, most time first."""
    found: dict[Product, list[tuple[int, int]]] = {}
    for product in profile.products(*BYTES_PER_ELEMENT):
        time_ns = int(profile.table.durations_of(profile.device_activity_of(product.row)).sum())
        if time_ns:
            found.setdefault(product, []).append((product.row, time_ns))
    rated = [
        RatedProduct(product, tuple(row for row, _ in calls), sum(time_ns for _, time_ns in calls))
        for product, calls in found.items()
    ]
    return sorted(rated, key=lambda each: -each.time_ns)
