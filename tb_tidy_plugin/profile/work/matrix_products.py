"""Matrix products on a device: their rates by size, and float32 that leaves matrix units unused."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_tidy_plugin.profile.device_models import slowest_device
from tb_tidy_plugin.profile.events.inputs import BYTES_PER_ELEMENT
from tb_tidy_plugin.profile.events.products import Product
from tb_tidy_plugin.profile.kernels import uses_float32_cores
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.trace.columns import Category, DeviceProperties, Rows
from tb_tidy_plugin.trace.sets import among
from tb_tidy_plugin.trace.strings import numbers_where

MATRIX_UNITS_SINCE = (7, 0)
HALF_IS_FASTER = 1.5
"""On a device with matrix units, half precision is more than this many times as fast as single precision: twice on
GeForce cards since Ampere, four to sixteen times on others.
"""


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


def float32_kernels(profile: Profile) -> Rows:
    """Kernels that multiply in float32 on ordinary cores, in row order; empty if the device has no matrix units."""
    table = profile.table
    if not has_matrix_units(profile):
        return np.empty(0, np.int64)
    named = among(table.name, numbers_where(table.names, uses_float32_cores))
    return np.flatnonzero(named & (table.category == Category.KERNEL))


def half_of_single(profile: Profile, device: DeviceProperties | None) -> float:
    """Least part of the time of float32 work on ordinary cores that half precision on matrix units takes.

    By the peak rates of the card, or of the slowest one that it can be.
    """
    model = None if device is None else profile.stated_model(device) or slowest_device(device)
    half, single = (None, None) if model is None else (model.peaks.get("c10::Half"), model.peaks.get("float"))
    if half is None or single is None or not half.matrix or not single.cores:
        return 1 / HALF_IS_FASTER
    return min(single.cores / half.matrix, 1 / HALF_IS_FASTER)


def has_matrix_units(profile: Profile) -> bool:
    """True if the profile's first known device has matrix units, by its peaks or its compute capability."""
    for entry in profile.metadata.devices:
        device = profile.stated_model(entry)
        if device is not None:
            half, single = device.peaks.get("c10::Half"), device.peaks.get("float")
            fast = (half.matrix or 0) if half else 0
            return bool(single and single.cores and fast > HALF_IS_FASTER * single.cores)
        if profile.platform == "cuda" and entry.computeMajor is not None:
            return (entry.computeMajor, entry.computeMinor or 0) >= MATRIX_UNITS_SINCE
    return False
