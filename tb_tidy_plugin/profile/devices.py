"""Devices of a recording: its platform, and the order of work on a stream.

A stream runs one piece of work after the other. Recordings hold single kernels whose duration runs over the next ones
on their stream (https://github.com/AMD-AGI/TraceLens/issues/669). Without a correction, such a kernel makes its step
longer, and takes the next steps' time.
"""

from __future__ import annotations

import re

import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.device_models import device_called, device_name, plain_name
from tb_tidy_plugin.profile.kernels import kernel_kind
from tb_tidy_plugin.trace.columns import ABSENT, DEVICE_WORK, Category, EventTable
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.trace.strings import numbers_where
from tb_tidy_plugin.words.units import Nanoseconds

_MAKERS = {
    "cuda": re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN"),
    "rocm": re.compile(r"AMD|Instinct|Radeon"),
}
"""Names of devices by platform, for recordings whose launches do not show it."""

_CALLS = {"XPU": r"^(?:ze|zes|ur|pi)[A-Z]", "MTIA": r"(?i)mtia|^runFunction - job_"}
"""Runtime calls of devices that are neither CUDA's nor ROCm's: of Level Zero and Unified Runtime, and of MTIA."""

REAL_NS = 10_000
"""Longest overlap on a stream that is believed: programmatic dependent launches overlap by 4 µs."""

SERIAL = 0.5
"""Least part of a stream's work that keeps the order; a stream with less of it is not one of a GPU."""


def platform_of(table: EventTable) -> str:
    """`cuda`, `rocm`, `cpu`, or `other` for devices that are neither."""
    keys = table.metadata.keys
    if any(key.startswith(("roctracer", "hip_")) for key in keys) or _has_launch(table, r"hip[A-Z]"):
        return "rocm"
    if any(key.startswith(("cupti", "cuda_")) for key in keys) or _has_launch(table, r"cu(da)?[A-Z]"):
        return "cuda"
    if not table.is_category(DEVICE_WORK).any():
        return "cpu"
    names = [device.name for device in table.metadata.devices]
    for platform, maker in _MAKERS.items():
        if any(maker.search(name) for name in names):
            return platform
    return "other"


def activity_of(table: EventTable) -> str:
    """The `ProfilerActivity` that records the device's work: `CUDA` also for ROCm; empty for an unknown device.

    A recording without any trace of a device has no other device than what most have.
    """
    platform = platform_of(table)
    if platform in {"cuda", "rocm"}:
        return "CUDA"
    for activity, calls in _CALLS.items():
        if _has_launch(table, calls):
            return activity
    return "CUDA" if platform == "cpu" else ""


def _has_launch(table: EventTable, pattern: str) -> bool:
    numbers = numbers_where(table.names, re.compile(pattern).search)
    return bool((among(table.name, numbers) & (table.category == Category.RUNTIME)).any())


def with_named_device(table: EventTable, name: str) -> EventTable:
    """The table with `name` for its devices if it does not name one itself, and a note if that was used."""
    listed = table.metadata.devices
    used = [index for index in distinct(table.device[table.is_category(DEVICE_WORK)]).tolist() if index != ABSENT]
    if not name or not used or any(plain_name(device_name(device)) for device in listed):
        return table
    known = {device.id: device for device in listed}
    named = tuple(
        replace(known[index], name=name) if index in known and known[index].numSms else device_called(name, index)
        for index in used
    )
    table = replace(table, metadata=replace(table.metadata, devices=named))
    return table.noted(f"The recording does not name its device: its limits are those of the {name}, which you named.")


def in_order(table: EventTable) -> EventTable:
    """The table with each piece of device work cut where the next one on its stream begins, and a note if any was.

    Kernels of one replayed graph run side by side, and are left as they are, like overlaps of up to `REAL_NS`. So does
    communication beside other work: some recorders give the number of a hardware queue that streams share.
    """
    rows = np.flatnonzero(table.is_category(DEVICE_WORK) & (table.stream != ABSENT) & (table.device != ABSENT))
    if len(rows) < 2:
        return table
    rows = rows[np.lexsort((-table.end_ns[rows], table.start_ns[rows], table.stream[rows], table.device[rows]))]
    device, stream, correlation = table.device[rows], table.stream[rows], table.correlation[rows]
    same = (device[1:] == device[:-1]) & (stream[1:] == stream[:-1])
    of_graph = (correlation[1:] == correlation[:-1]) & (correlation[1:] > 0)
    over_ns = np.where(same & ~of_graph, table.end_ns[rows[:-1]] - table.start_ns[rows[1:]], 0)
    late = over_ns > REAL_NS
    if not late.any():
        return table
    communicates = table.is_named(lambda name: kernel_kind(name) == "communication")[rows]
    late &= communicates[1:] == communicates[:-1]
    # Number of the stream of each piece that another one may follow, and how many pieces of each stream are late.
    number = np.append(0, np.cumsum(~same))[:-1]
    is_serial = np.bincount(number, late) <= np.maximum((1 - SERIAL) * np.bincount(number), 1)
    cut = np.flatnonzero(late & is_serial[number])
    if not len(cut):
        return table
    end_ns = table.end_ns.copy()
    end_ns[rows[cut]] = table.start_ns[rows[cut + 1]]
    longest = Nanoseconds(over_ns[cut].max())
    if len(cut) == 1:
        said = f"1 piece of device work overlaps the next one on its stream by {longest}: it counts until that begins."
    else:
        said = (
            f"{len(cut):,} pieces of device work overlap the next ones on their streams by up to {longest}: they count "
            "until these begin."
        )
    return replace(table, end_ns=end_ns).noted(f"{said} A stream runs one piece after the other.")
