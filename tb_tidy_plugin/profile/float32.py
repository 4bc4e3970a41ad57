"""Products and convolutions in float32 that leave a device's matrix units unused, recognised by kernels' names."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.devices import slowest_device
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
    model = None if device is None else profile.device_called(device.name) or slowest_device(device)
    half, single = (None, None) if model is None else (model.peaks.get("c10::Half"), model.peaks.get("float"))
    if half is None or single is None or not half.matrix or not single.cores:
        return 1 / HALF_IS_FASTER
    return min(single.cores / half.matrix, 1 / HALF_IS_FASTER)


def has_matrix_units(profile: Profile) -> bool:
    """True if the profile's first known device has matrix units, by its peaks or its compute capability."""
    for entry in profile.metadata.devices:
        device = profile.device_called(entry.name)
        if device is not None:
            half, single = device.peaks.get("c10::Half"), device.peaks.get("float")
            fast = max(half.matrix or 0, half.cores or 0) if half else 0
            return bool(single and single.cores and fast > HALF_IS_FASTER * single.cores)
        if profile.platform == "cuda" and entry.computeMajor is not None and "GTX 16" not in entry.name:
            return (entry.computeMajor, entry.computeMinor or 0) >= MATRIX_UNITS_SINCE
    return False
