"""Memory over time: the curve, its peak with the live allocations, and the memory that each step kept.

`Total Allocated` and `Total Reserved` of a `[memory]` instant are the allocator's own figures right after it and
include what no event shows: memory allocated before the recording, and by threads that were not recorded. They are
authoritative if present. Without them (2021) the events are summed up, and memory from before the recording is known
only as far as it was freed in it. On the CPU the totals start from zero when a process first records memory, and
nothing is called reserved (`ProfiledCPUMemoryReporter`,
https://github.com/pytorch/pytorch/blob/v2.13.0/c10/core/CPUAllocator.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from tb_tidy_plugin.profile.memory.allocations import (
    HOST,
    Allocations,
    MemoryDevice,
    MemoryEvents,
    allocations_of,
    ends_of_life,
    memory_events,
)
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import ProfileSteps
from tb_tidy_plugin.trace.columns import ABSENT, Mask, Rows, Times
from tb_tidy_plugin.trace.sets import among, distinct
from tb_tidy_plugin.words.vocabulary import TotalBasis

POINTS = 2000
"""Points of a curve: more than a chart has pixels."""


class MemoryCurve(msgspec.Struct, frozen=True):
    """Memory over time, bytes; between two points the first one's value holds.

    Thinned to few points: of each stretch of time the least and the largest values are kept, so peaks stay.
    `reserved_bytes` is None if nothing was recorded.
    """

    time_ns: tuple[int, ...]
    allocated_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...] | None


class MemoryPeak(msgspec.Struct, frozen=True):
    """The moment of a device's largest allocated memory; the first one if it was reached repeatedly.

    Attributes:
        time_ns: relative to the profile's start.
        row: the `[memory]` row that reached it, `ABSENT` if the recording began with it.
        allocated_bytes: allocated then. reserved_bytes: held by the allocator then, None if not recorded.
        alive: recorded allocations alive then, largest first; None if addresses were not recorded.
        other_bytes: the rest of `allocated_bytes`: allocated before the recording, or by threads that were not
            recorded. Negative if the recording lacks frees, None if it lacks addresses.
    """

    time_ns: int
    row: int
    allocated_bytes: int
    reserved_bytes: int | None
    alive: Allocations | None
    other_bytes: int | None


class DeviceMemory(msgspec.Struct, frozen=True):
    """One device's memory over the whole profile, bytes.

    Attributes:
        device: number in `Memory.devices`.
        basis: `total_allocated`, the allocator's own figure, or `running_sum` of the events: then all allocated bytes
            are "at least", since memory from before the recording is known only as far as it was freed.
        start_bytes: allocated before the first event.
        peak_reserved_bytes: most that the allocator held, None if not recorded.
        allocations, frees: number of events. allocated_bytes: sum over all allocations.
        frees_of_unseen, bytes_of_unseen: frees of what was allocated before the recording, or by threads that were not
            recorded; None without addresses.
        disagreements: events after which `Total Allocated` is not the total before plus `Bytes`: something happened
            that was not recorded, or two threads were stamped in another order. 0 for a running sum.
    """

    device: int
    basis: TotalBasis
    curve: MemoryCurve
    start_bytes: int
    peak: MemoryPeak
    peak_reserved_bytes: int | None
    allocations: int
    frees: int
    allocated_bytes: int
    frees_of_unseen: int | None
    bytes_of_unseen: int | None
    disagreements: int


class StepMemory(msgspec.Struct, frozen=True):
    """One device's memory in one step, bytes.

    Attributes:
        step: index of the step. device: number in `Memory.devices`.
        start_bytes, end_bytes, peak_bytes: allocated when the step began and ended, and at most in between.
        kept, kept_bytes: allocations made in the step and not freed in it: normal if the next step frees them, as
            it does gradients. None if addresses were not recorded.
    """

    step: int
    device: int
    start_bytes: int
    end_bytes: int
    peak_bytes: int
    kept: int | None
    kept_bytes: int | None


class OutOfMemory(msgspec.Struct, frozen=True):
    """An allocation that failed; totals None if not recorded."""

    row: int
    time_ns: int
    device: int
    wanted_bytes: int
    allocated_bytes: int | None
    reserved_bytes: int | None


class Memory(msgspec.Struct, frozen=True):
    """All memory data of a profile.

    Attributes:
        by_device: devices that allocated or freed, in the order of `devices`. steps: by device, then step.
        allocations: all of them in order of time; without those of devices that record no addresses.
    """

    devices: tuple[MemoryDevice, ...]
    by_device: tuple[DeviceMemory, ...]
    steps: tuple[StepMemory, ...]
    allocations: Allocations
    out_of_memory: tuple[OutOfMemory, ...]


class _Timeline(msgspec.Struct, frozen=True):
    """One device: its events, allocated bytes before the first and after each of them, and reserved bytes."""

    device: int
    events: MemoryEvents
    basis: TotalBasis
    start_bytes: int
    allocated: Times
    reserved: Times | None

    def allocated_before(self, time_ns: int) -> int:
        """Bytes allocated right before a moment."""
        at = int(np.searchsorted(self.events.time_ns, time_ns))
        return int(self.allocated[at - 1]) if at else self.start_bytes


class _Lives(msgspec.Struct, frozen=True):
    """All events, the position at which each allocation ends, and the frees of unseen allocations."""

    events: MemoryEvents
    end: Rows
    unseen: Mask

    def has_addresses(self, device: int) -> bool:
        """True if all events of a device have addresses, so that lifetimes are known."""
        return bool((self.events.address[self.events.device == device] != 0).all())

    def alive_after(self, position: int, device: int) -> Allocations:
        """The device's allocations that are alive after the event at `position`."""
        made = (np.arange(len(self.events)) <= position) & (self.events.device == device)
        return allocations_of(self.events, self.end, made & ((self.end == ABSENT) | (self.end > position)))


def memory_of(profile: Profile, points: int = POINTS) -> Memory | None:
    """Memory over time, its peak and what each step kept; None if no memory was recorded.

    Args:
        profile: one trace.
        points: most points of a curve, at least 8.
    """
    events = memory_events(profile)
    if not len(events):
        return None
    real = events.take(~events.failed & (events.bytes != 0))
    lives = _Lives(real, *ends_of_life(real))
    timelines = [_timeline(lives, device) for device in distinct(real.device).tolist()]
    known = among(real.device, [line.device for line in timelines if lives.has_addresses(line.device)])
    allocations = allocations_of(real, lives.end, known)
    return Memory(
        devices=events.devices,
        by_device=tuple(_device_memory(timeline, lives, points) for timeline in timelines),
        steps=tuple(_steps(profile.steps, timelines, lives, allocations)),
        allocations=allocations,
        out_of_memory=tuple(_failures(events.take(events.failed))),
    )


def peak_bytes_of(profile: Profile) -> int | None:
    """Most bytes allocated on the fullest accelerator, or on the host if no accelerator's memory was recorded."""
    memory = memory_of(profile)
    if memory is None:
        return None
    peaks = [(memory.devices[each.device].kind, each.peak.allocated_bytes) for each in memory.by_device]
    accelerators = [peak for kind, peak in peaks if kind != HOST]
    return max(accelerators or [peak for _, peak in peaks])


def _kept_in(allocations: Allocations, steps: ProfileSteps) -> Rows:
    """The step in which each allocation was made if it was not freed before that step's end, else `ABSENT`."""
    made_in = steps.index_of(allocations.allocated_ns)
    if not steps.items:
        return made_in
    outlives = (allocations.freed_ns == ABSENT) | (allocations.freed_ns >= steps.ends[made_in])
    return np.where(outlives, made_in, ABSENT)


def _timeline(lives: _Lives, device: int) -> _Timeline:
    here = lives.events.device == device
    events = lives.events.take(here)
    has_reserved = lives.events.devices[device].kind != HOST and bool((events.reserved != ABSENT).all())
    reserved = events.reserved if has_reserved else None
    if (events.allocated != ABSENT).all():
        start_bytes = int(events.allocated[0] - events.bytes[0])
        return _Timeline(device, events, "total_allocated", start_bytes, events.allocated, reserved)
    sums = np.cumsum(events.bytes)
    start_bytes = max(-int(sums.min()), -int(lives.events.bytes[here & lives.unseen].sum()), 0)
    return _Timeline(device, events, "running_sum", start_bytes, start_bytes + sums, reserved)


def _device_memory(timeline: _Timeline, lives: _Lives, points: int) -> DeviceMemory:
    events, allocated, reserved = timeline.events, timeline.allocated, timeline.reserved
    before = np.append(timeline.start_bytes, allocated[:-1])
    unseen = lives.events.bytes[lives.unseen & (lives.events.device == timeline.device)]
    has_addresses = lives.has_addresses(timeline.device)
    return DeviceMemory(
        device=timeline.device,
        basis=timeline.basis,
        curve=_curve(timeline, points),
        start_bytes=timeline.start_bytes,
        peak=_peak(timeline, lives),
        peak_reserved_bytes=None if reserved is None else int(reserved.max()),
        allocations=int((events.bytes > 0).sum()),
        frees=int((events.bytes < 0).sum()),
        allocated_bytes=int(events.bytes[events.bytes > 0].sum()),
        frees_of_unseen=len(unseen) if has_addresses else None,
        bytes_of_unseen=-int(unseen.sum()) if has_addresses else None,
        disagreements=int((allocated - before != events.bytes).sum()),
    )


def _peak(timeline: _Timeline, lives: _Lives) -> MemoryPeak:
    """The peak: the first event that reaches it, or the start if none does; then its tensors are unknown."""
    at, reserved = int(timeline.allocated.argmax()), timeline.reserved
    begins_with_it = timeline.start_bytes > timeline.allocated[at]
    most = timeline.start_bytes if begins_with_it else int(timeline.allocated[at])
    position = ABSENT if begins_with_it else int(np.flatnonzero(lives.events.device == timeline.device)[at])
    alive = None
    if lives.has_addresses(timeline.device):
        alive = lives.alive_after(position, timeline.device).largest_first
    return MemoryPeak(
        time_ns=0 if begins_with_it else int(timeline.events.time_ns[at]),
        row=ABSENT if begins_with_it else int(timeline.events.row[at]),
        allocated_bytes=most,
        reserved_bytes=None if reserved is None or begins_with_it else int(reserved[at]),
        alive=alive,
        other_bytes=None if alive is None else most - int(alive.bytes.sum()),
    )


def _curve(timeline: _Timeline, points: int) -> MemoryCurve:
    """The curve from the profile's start to the device's last event."""
    time_ns = np.append(0, timeline.events.time_ns)
    allocated = np.append(timeline.start_bytes, timeline.allocated)
    reserved = None if timeline.reserved is None else np.append(timeline.reserved[:1], timeline.reserved)
    kept = thinned(time_ns, [allocated] if reserved is None else [allocated, reserved], points)
    return MemoryCurve(
        time_ns=tuple(time_ns[kept].tolist()),
        allocated_bytes=tuple(allocated[kept].tolist()),
        reserved_bytes=None if reserved is None else tuple(reserved[kept].tolist()),
    )


def thinned(time_ns: Times, values: list[Times], points: int) -> Rows:
    """Positions of at most `points` entries that keep the shape of curves over one time axis.

    The time is cut into equal stretches. Of each, the first least and the first largest value of every curve are kept,
    and the first and the last entry of all.
    """
    if len(time_ns) <= points:
        return np.arange(len(time_ns))
    stretches = max((points - 2) // (2 * len(values)), 1)
    span = max(int(time_ns[-1] - time_ns[0]), 1)
    stretch = np.minimum((time_ns - time_ns[0]) * stretches // span, stretches - 1)
    ends = np.array([0, len(time_ns) - 1])
    least = [_first_of_each(stretch, value) for value in values]
    largest = [_first_of_each(stretch, -value) for value in values]
    return distinct(np.concatenate([ends, *least, *largest]))


def _first_of_each(stretch: Rows, value: Times) -> Rows:
    """The position of the least value of each stretch, the first of equal ones."""
    order = np.lexsort((value, stretch))
    return order[np.diff(stretch[order], prepend=-1) > 0]


def _steps(
    steps: ProfileSteps, timelines: list[_Timeline], lives: _Lives, allocations: Allocations
) -> Iterator[StepMemory]:
    kept_in = _kept_in(allocations, steps)
    for timeline in timelines:
        here = allocations.device == timeline.device
        has_addresses = lives.has_addresses(timeline.device)
        in_step, sizes = kept_in[here] + 1, allocations.bytes[here]
        counts = np.bincount(in_step, minlength=len(steps.items) + 1)
        sums = np.zeros(len(steps.items) + 1, np.int64)
        np.add.at(sums, in_step, sizes)
        for step in steps.items:
            inside = slice(*np.searchsorted(timeline.events.time_ns, [step.start_ns, step.end_ns]))
            start_bytes = timeline.allocated_before(step.start_ns)
            yield StepMemory(
                step=step.index,
                device=timeline.device,
                start_bytes=start_bytes,
                end_bytes=timeline.allocated_before(step.end_ns),
                peak_bytes=int(timeline.allocated[inside].max(initial=start_bytes)),
                kept=int(counts[step.index + 1]) if has_addresses else None,
                kept_bytes=int(sums[step.index + 1]) if has_addresses else None,
            )


def _failures(events: MemoryEvents) -> Iterator[OutOfMemory]:
    columns = (events.row, events.time_ns, events.device, events.bytes, events.allocated, events.reserved)
    for row, time_ns, device, wanted, allocated, reserved in zip(*(column.tolist() for column in columns), strict=True):
        yield OutOfMemory(
            row=row,
            time_ns=time_ns,
            device=device,
            wanted_bytes=wanted,
            allocated_bytes=None if allocated == ABSENT else allocated,
            reserved_bytes=None if reserved == ABSENT else reserved,
        )
