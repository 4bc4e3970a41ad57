"""What the time of a profile was spent on: unions over host threads and device streams."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_tidy_plugin.profile.intervals import Intervals
from tb_tidy_plugin.profile.steps import LOADER_NEXT
from tb_tidy_plugin.trace.columns import DEVICE_WORK, Category, EventTable, Mask, Rows
from tb_tidy_plugin.trace.strings import numbers_where

COLLECTIVE_KERNEL = re.compile(
    r"nccl|rccl|cross_device_reduce|all_?(?:reduce|gather|to_?all)|reduce_?scatter|broadcast_kernel", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Unions over the whole profile, in ns; device figures are averages over devices, None without device work."""

    wall_ns: int
    data_loading_ns: int
    host_to_device_ns: int | None = None
    device_to_host_ns: int | None = None
    communication_ns: int | None = None
    communication_exposed_ns: int | None = None
    compute_ns: int | None = None
    device_busy_ns: int | None = None
    device_idle_ns: int | None = None


def time_spent(table: EventTable) -> TimeSpent:
    """Where the time of the whole profile went.

    Wall time is the first start to the last end of everything recorded. Communication is exposed while no other kernel
    runs on the same device.
    """
    wall_ns = int(table.end_ns.max(initial=0) - table.start_ns.min(initial=0)) if len(table) else 0
    loading = (table.category == Category.ANNOTATION) & _named(table, LOADER_NEXT.fullmatch)
    data_loading_ns = covered(table, loading).total_ns
    work = table.is_category(DEVICE_WORK)
    devices = np.unique(table.device[work])
    if not len(devices):
        return TimeSpent(wall_ns, data_loading_ns)
    collective = (table.category == Category.KERNEL) & is_collective(table)
    to_device = (table.category == Category.COPY) & _named(table, re.compile("HtoD|HostToDevice", re.IGNORECASE).search)
    to_host = (table.category == Category.COPY) & _named(table, re.compile("DtoH|DeviceToHost", re.IGNORECASE).search)
    per_device = [
        _device_time(table, work & (table.device == device), collective, to_device, to_host) for device in devices
    ]
    means = [round(sum(times) / len(devices)) for times in zip(*per_device, strict=True)]
    to_device_ns, to_host_ns, communication_ns, exposed_ns, compute_ns, busy_ns = means
    return TimeSpent(
        wall_ns=wall_ns,
        data_loading_ns=data_loading_ns,
        host_to_device_ns=to_device_ns,
        device_to_host_ns=to_host_ns,
        communication_ns=communication_ns,
        communication_exposed_ns=exposed_ns,
        compute_ns=compute_ns,
        device_busy_ns=busy_ns,
        device_idle_ns=wall_ns - busy_ns,
    )


def _device_time(table: EventTable, here: Mask, collective: Mask, to_device: Mask, to_host: Mask) -> tuple[int, ...]:
    """Unions on one device: copies to it, copies from it, communication, of that exposed, compute, busy."""
    communication = covered(table, collective & here)
    compute = covered(table, (table.category == Category.KERNEL) & ~collective & here)
    return (
        covered(table, to_device & here).total_ns,
        covered(table, to_host & here).total_ns,
        communication.total_ns,
        communication.total_ns - communication.overlap_ns(compute),
        compute.total_ns,
        covered(table, here).total_ns,
    )


def is_collective(table: EventTable) -> Mask:
    """Which rows have the name of a communication kernel (NCCL, RCCL, vendor all-reduce)."""
    return _named(table, COLLECTIVE_KERNEL.search)


def covered(table: EventTable, rows: Mask | Rows) -> Intervals:
    """The time that `rows` cover together."""
    return Intervals.union(table.start_ns[rows], table.end_ns[rows])


def _named(table: EventTable, test: Callable[[str], object]) -> Mask:
    return np.isin(table.name, numbers_where(table.names, test))
