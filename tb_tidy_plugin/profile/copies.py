"""Copies between host and device: the operators that make them, the step's waits for them, and their peak rate."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.profile.critical import device_idle
from tb_tidy_plugin.profile.inputs import Shape
from tb_tidy_plugin.profile.intervals import Intervals, covered
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Rows
from tb_tidy_plugin.trace.sets import distinct

SOURCE = aten.by_name("known", {"to": 0, "_to_copy": 0, "copy_": 1})
"""Operators that only copy, and the position of the input that they copy."""

PINNED = r"(?:HtoD|HostToDevice).{0,100}\(Pinned"
_LARGE = 1 << 20
"""Least bytes of a copy that reaches the speed of the bus."""

LINK_BYTES_PER_NS = {7: 12.0, 8: 24.0, 9: 55.0, 10: 55.0, 12: 55.0}
"""Rates that copies from pinned memory reach in practice, by major compute capability: PCIe 3, 4 and 5 with 16 lanes.
Since Volta, each generation of data centre GPUs doubled it; Blackwell stays at PCIe 5. A public recording of an H100
(shreyansh26/MLSys-Experiments) copies 20 MiB at 57 GB/s.
"""


def copying_operator(profile: Profile, cause: int) -> int | None:
    """The outermost operator around `cause` that only copies, None without one."""
    found = [row for row in (cause, *profile.ancestors(cause)) if profile.name(row) in SOURCE]
    return found[-1] if found else None


def copied_input(profile: Profile, operator: int) -> tuple[Shape, str]:
    """Shape and dtype of the input of a copying operator; no elements if unknown."""
    position, inputs = SOURCE.get(profile.name(operator)), profile.inputs(operator)
    return ((0,), "") if position is None else (inputs.shape(position) or (0,), inputs.dtype(position))


def exposed_copies(profile: Profile, copies: Rows) -> list[Intervals]:
    """Spans in which the step waits for each of `copies`.

    The step waits for the copy itself while no kernel runs on its device, and for the host in the call while no device
    runs. The call is the innermost operator, which includes the wait for the copy's end. The time before a device's
    first recorded work does not count: work launched before the recording is missing.
    """
    table, busy = profile.table, profile.device_busy
    always = device_idle(profile).plus(busy)
    idle = device_idle(profile).intersection(Intervals(busy.starts[:1], always.ends))
    kernels = {
        device: always.minus(covered(table, (table.category == Category.KERNEL) & (table.device == device)))
        for device in distinct(table.device[copies]).tolist()
    }
    found = []
    for row in copies.tolist():
        without_kernel = _time_of(profile, row).intersection(kernels[int(table.device[row])])
        cause = int(profile.launched_by[row])
        host = Intervals.none() if cause == ABSENT else _time_of(profile, cause).intersection(idle)
        found.append(without_kernel.plus(host))
    return found


def pinned_bytes_per_ns(profile: Profile) -> tuple[float, bool]:
    """Rate of copies from pinned memory to the device, and True if the recording itself shows it."""
    table = profile.table
    rows = profile.matching(PINNED, Category.COPY)
    rows = rows[(table.bytes[rows] >= _LARGE) & (table.end_ns[rows] > table.start_ns[rows])]
    if len(rows):
        return float(np.median(table.bytes[rows] / (table.end_ns[rows] - table.start_ns[rows]))), True
    known = profile.metadata.devices[0] if profile.metadata.devices else None
    return LINK_BYTES_PER_NS.get((known and known.computeMajor) or 0, LINK_BYTES_PER_NS[7]), False


def _time_of(profile: Profile, row: int) -> Intervals:
    return covered(profile.table, np.array([row]))
