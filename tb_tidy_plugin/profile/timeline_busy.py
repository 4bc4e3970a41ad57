"""Busy shares of the host and the devices over a recording, for the timeline's overview."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category, EventTable, Mask

BUSY_PARTS = 1_000
"""Number of pixels of a minimap."""


class Busy(msgspec.Struct, frozen=True):
    """Shares from 0 to 1, one for each of `BUSY_PARTS` equally long parts of the recording.

    Attributes:
        host: share in which any thread runs an operator. Empty if no operator was recorded.
        device: share in which any kernel, copy or fill runs. Empty if none was recorded.
    """

    host: NDArray[np.float64]
    device: NDArray[np.float64]


def busy_of(table: EventTable, until_ns: int) -> Busy:
    """Busy shares from 0 to `until_ns`."""
    return Busy(
        _shares(table, table.is_category((Category.OPERATOR,)), until_ns),
        _shares(table, table.is_category(DEVICE_WORK), until_ns),
    )


def _shares(table: EventTable, which: Mask, until_ns: int) -> NDArray[np.float64]:
    if not which.any():
        return np.zeros(0)
    taken = Intervals.union(table.start_ns[which], table.end_ns[which])
    edges = np.array([part * until_ns // BUSY_PARTS for part in range(BUSY_PARTS + 1)], np.int64)
    shares: NDArray[np.float64] = np.diff(taken.covered_before(edges)) / np.maximum(np.diff(edges), 1)
    return shares
