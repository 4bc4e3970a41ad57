"""Device work joined to the runtime call that launched it."""

from __future__ import annotations

import numpy as np

from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, EventTable, Ids, Rows, repeated
from tb_tidy_plugin.trace.sets import among

LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async_gpu", "async"})
"""Categories of the arrows from launch to device work, by era."""


def launches(table: EventTable) -> Rows:
    """The row of the runtime call that launched each row, `ABSENT` for host rows and unrecorded launches.

    `correlation` is preferred; arrows are used if it is missing. A graph launch is the launch of many kernels.
    Kernels without a launch and launches without a kernel are normal: parts of a job are often recorded alone.
    """
    device = np.flatnonzero(table.is_category(DEVICE_WORK))
    if not len(device):
        return repeated(ABSENT, len(table))
    launch = np.full(len(table), ABSENT, np.int64)
    runtime = np.flatnonzero(table.category == Category.RUNTIME)
    launch[device] = _joined(table.correlation[device], table.correlation[runtime], runtime)
    missing = device[launch[device] == ABSENT]
    if len(missing):
        launch[missing] = _by_arrow(table, missing, runtime)
    return launch


def _joined(wanted: Ids, keys: Ids, rows: Rows) -> Rows:
    """The first of `rows` with a key equal to each of `wanted`, `ABSENT` without a match or a key."""
    order = np.argsort(keys, kind="stable")
    if not len(order):
        return np.full(len(wanted), ABSENT, np.int64)
    at = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    found = (keys[order][at] == wanted) & (wanted > 0)
    return np.where(found, rows[order[at]], ABSENT)


def _by_arrow(table: EventTable, device: Rows, runtime: Rows) -> Rows:
    flows = table.flows
    kinds = [number for number, name in enumerate(table.names) if name in LAUNCH_FLOWS]
    wanted = among(flows.kind, kinds)
    starts, ends = np.flatnonzero(wanted & flows.is_start), np.flatnonzero(wanted & ~flows.is_start)
    row_of_start = _at(table, runtime, starts)
    start_of_end = _joined(flows.flow[ends], flows.flow[starts], starts)
    launch_by_device: dict[int, int] = {}
    launch_by_start = dict(zip(starts.tolist(), row_of_start.tolist(), strict=True))
    launch_by_start[ABSENT] = ABSENT
    for row, start in zip(_at(table, device, ends).tolist(), start_of_end.tolist(), strict=True):
        launch_by_device.setdefault(row, launch_by_start[start])
    return np.array([launch_by_device.get(row, ABSENT) for row in device.tolist()], np.int64)


def _at(table: EventTable, rows: Rows, arrows: Rows) -> Rows:
    """The row among `rows` that starts where each arrow does, on its thread."""
    by_place = {
        (thread, start): row
        for thread, start, row in zip(
            table.thread[rows].tolist(), table.start_ns[rows].tolist(), rows.tolist(), strict=True
        )
    }
    threads, times = table.flows.thread[arrows].tolist(), table.flows.time_ns[arrows].tolist()
    return np.array([by_place.get(place, ABSENT) for place in zip(threads, times, strict=True)], np.int64)
