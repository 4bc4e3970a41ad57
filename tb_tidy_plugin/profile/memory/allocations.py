"""Allocations: the `[memory]` instants that `profile_memory=True` records, and the lifetimes of allocations.

Each instant is one allocation (positive `Bytes`) or one free (negative) of one device's allocator, at an address. An
allocation lives until the next free at its address, on whatever thread; addresses are used again. Traces of 2021 have
no addresses, so their lifetimes are unknown.
Source: `reportMemoryUsage` in https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/profiler/collection.cpp.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from tb_tidy_plugin.profile.once import once
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.torchfacts import aten
from tb_tidy_plugin.trace.columns import ABSENT, Category, Mask, Rows, Times
from tb_tidy_plugin.trace.limits import MOST_DEVICES
from tb_tidy_plugin.trace.sets import among, numbered
from tb_tidy_plugin.trace.strings import numbers_where

_OUT_OF_MEMORY = "[OutOfMemory]"
HOST = "cpu"

DEVICE_KINDS = {
    0: HOST, 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia", 20: "privateuseone",
}  # fmt: skip
"""`c10::DeviceType`, https://github.com/pytorch/pytorch/blob/v2.13.0/torch/headeronly/core/DeviceType.h."""

ALLOCATORS = aten.names(
    "factory", "empty empty_like empty_permuted empty_strided new_empty new_empty_strided"
) | aten.names("in_place", "resize_ resize_as_")
"""Operators that only allocate memory, on behalf of the operator around them."""

ADDRESS_BITS = (1 << 63) - 1
"""Addresses are only compared; a column holds 63 bits of them."""

INDEX_BITS = 17
"""Bits of a device's index, `ABSENT` to 65,535, below its kind in a number for both."""

_AT_ONCE = 1 << 15  # most events that exist as objects at a time

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class _Args(msgspec.Struct):
    """Args of one instant; implausible args take their defaults, so the event has no effect."""

    type: Annotated[int, msgspec.Meta(ge=0, le=255)] = msgspec.field(name="Device Type", default=0)
    index: Annotated[int, msgspec.Meta(ge=-1, le=65_535)] = msgspec.field(name="Device Id", default=ABSENT)
    address: int = msgspec.field(name="Addr", default=0)
    bytes: _Size = msgspec.field(name="Bytes", default=0)
    allocated: _Size = msgspec.field(name="Total Allocated", default=ABSENT)
    reserved: _Size = msgspec.field(name="Total Reserved", default=ABSENT)


class MemoryDevice(msgspec.Struct, frozen=True):
    """Device of memory: `kind` as PyTorch calls it (`cpu`, `cuda`, …), but `rocm` on AMD; `index` -1 for the CPU."""

    kind: str
    index: int


class MemoryEvents(msgspec.Struct, frozen=True):
    """Instants about memory in order of time, one entry each.

    Attributes:
        devices: every device that occurs, the CPU first.
        row: row of the profile. time_ns: relative to the profile's start. device: number in `devices`.
        address: 0 if none was recorded.
        bytes: negative for a free; the requested size if memory ran out.
        allocated, reserved: the allocator's own totals right after, bytes, `ABSENT` if not recorded.
        failed: True for `[OutOfMemory]`: nothing was allocated.
    """

    devices: tuple[MemoryDevice, ...]
    row: Rows
    time_ns: Times
    device: Rows
    address: Times
    bytes: Times
    allocated: Times
    reserved: Times
    failed: Mask

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: Rows | Mask) -> MemoryEvents:
        columns = ("row", "time_ns", "device", "address", "bytes", "allocated", "reserved", "failed")
        return replace(self, **{name: getattr(self, name)[which] for name in columns})


class Allocations(msgspec.Struct, frozen=True):
    """Recorded allocations, one entry each.

    Attributes:
        row: the `[memory]` row. device: number in `MemoryEvents.devices`.
        bytes: size, with the allocator's rounding.
        allocated_ns, freed_ns: relative to the profile's start; `freed_ns` is `ABSENT` if no free was recorded.
    """

    row: Rows
    device: Rows
    bytes: Times
    allocated_ns: Times
    freed_ns: Times

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: Rows | Mask) -> Allocations:
        return Allocations(
            self.row[which], self.device[which], self.bytes[which], self.allocated_ns[which], self.freed_ns[which]
        )

    @property
    def largest_first(self) -> Allocations:
        """The allocations by descending size; equal ones keep their order."""
        return self.take(np.argsort(-self.bytes, kind="stable"))


@once
def memory_events(profile: Profile) -> MemoryEvents:
    """All instants about memory, decoded once; empty if none were recorded."""
    table = profile.table
    rows = np.flatnonzero(table.category == Category.MEMORY)
    rows = rows[np.lexsort((table.file_order[rows], table.event_index[rows], table.start_ns[rows]))]
    parts = [_amounts(table.args.decoded(some, _Args)) for some in np.array_split(rows, len(rows) // _AT_ONCE + 1)]
    amounts = np.concatenate(parts)
    places, device = numbered((amounts[:, 0] << INDEX_BITS) + amounts[:, 1])
    places, device = places[: MOST_DEVICES + 1], np.minimum(device, MOST_DEVICES)  # all others count as one
    address, size, allocated, reserved = amounts[:, 2:].T
    return MemoryEvents(
        devices=tuple(_device(place, profile.platform) for place in places.tolist()),
        row=rows,
        time_ns=table.start_ns[rows],
        device=device,
        address=address,
        bytes=size,
        allocated=allocated,
        reserved=reserved,
        failed=among(table.name[rows], numbers_where(table.names, _OUT_OF_MEMORY.__eq__)),
    )


def _amounts(args: list[_Args]) -> Times:
    """One row per event: the device's kind and index, address, bytes, and allocated and reserved bytes after it."""
    rows = [
        (each.type, each.index, each.address & ADDRESS_BITS, each.bytes, each.allocated, each.reserved) for each in args
    ]
    return np.array(rows, np.int64).reshape(-1, 6)


def _device(place: int, platform: str) -> MemoryDevice:
    """The device of a kind and an index in one number."""
    kind = (place - ABSENT) >> INDEX_BITS
    return MemoryDevice(_kind(kind, platform), place - (kind << INDEX_BITS))


def _kind(number: int, platform: str) -> str:
    if number == 1 and platform == "rocm":
        return platform  # HIP calls itself CUDA
    return DEVICE_KINDS.get(number, f"device type {number}")


def ends_of_life(events: MemoryEvents) -> tuple[Rows, Mask]:
    """Position in `events` at which each allocation ends, and mask of frees of unseen allocations.

    An allocation ends at the next event with its device and address. That is a free, or, if the free is missing in the
    recording, the next allocation there. The position is `ABSENT` for frees, for allocations that never end, and for
    events without an address. Frees without an address are not in the mask.
    """
    position = np.flatnonzero(events.address != 0)
    order = position[np.lexsort((position, events.address[position], events.device[position]))]
    continues = (np.diff(events.device[order]) == 0) & (np.diff(events.address[order]) == 0)
    end = np.full(len(events), ABSENT, np.int64)
    end[order[:-1][continues]] = order[1:][continues]
    unseen = (events.bytes < 0) & (events.address != 0)
    unseen[end[(end != ABSENT) & (events.bytes > 0)]] = False
    return np.where(events.bytes > 0, end, ABSENT), unseen


def allocations_of(events: MemoryEvents, end: Rows, which: Mask) -> Allocations:
    """The allocations `which` of `events`, whose lives end at the positions `end`."""
    which = which & (events.bytes > 0)
    ends = end[which]
    return Allocations(
        row=events.row[which],
        device=events.device[which],
        bytes=events.bytes[which],
        allocated_ns=events.time_ns[which],
        freed_ns=np.where(ends == ABSENT, ABSENT, events.time_ns[ends]),
    )


def asked_by(profile: Profile, rows: Rows) -> Rows:
    """The innermost operator around each `[memory]` row that does more than allocate memory.

    Without one: the innermost operator, else the innermost host event of any kind, else `ABSENT`.
    """
    table, size = profile.table, profile.tree.size
    is_operator = table.category[:size] == Category.OPERATOR
    allocators = numbers_where(table.names, lambda name: aten.without_overload(name) in ALLOCATORS)
    hands_out = among(table.name[:size], allocators)
    found: Rows = profile.tree.parent[rows].astype(np.int64)
    for wanted in (is_operator, is_operator & ~hands_out):
        above = profile.tree.nearest_ancestor(wanted)[rows]
        found = np.where(above == ABSENT, found, above)
    return found
