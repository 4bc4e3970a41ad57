"""Kinds of memory, by the place of the allocation in a step and its lifetime.

A trace names no tensors. It shows the phase in which an allocation is made, by the events of the backward pass and of
`Optimizer.step`, and when it is freed. Memory from before the recording (parameters, most of an optimizer's state) has
no allocation: it is a kind of its own.
"""

from __future__ import annotations

from typing import get_args

import msgspec
import numpy as np

from tb_tidy_plugin.profile.events.intervals import Intervals
from tb_tidy_plugin.profile.memory.allocations import MemoryEvents, asked_by, ends_of_life, memory_events
from tb_tidy_plugin.profile.memory.usage import POINTS, Memory, thinned
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.profile.steps.steps import LOADER_NEXT
from tb_tidy_plugin.torchfacts.event_names import BACKWARD, TO_DEVICE
from tb_tidy_plugin.trace.columns import ABSENT, HOST_TREE, Category, Mask, Rows, Times
from tb_tidy_plugin.words.vocabulary import MemoryKind

MEMORY_KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
EARLIER, _, _INPUT, ACTIVATION, GRADIENT, STATE, TEMPORARY, _UNKNOWN = range(len(MEMORY_KINDS))

PAUSE_NS = 1_000_000
"""Two events of the backward pass with less time between them belong to one pass."""

_NEVER = np.iinfo(np.int64).max


class MemoryByKind(msgspec.Struct, frozen=True):
    """One device's memory over time by kind, bytes; between two points the first one's values hold.

    Attributes:
        time_ns: relative to the profile's start, thinned so that peaks stay.
        bytes: one row per kind in `MEMORY_KINDS`; at each point they add up to all allocated bytes. Those of `unknown`
            are negative if the recording lacks frees.
        peak: position in `time_ns` of the largest sum.
    """

    time_ns: Times
    bytes: Times
    peak: int


def kinds_of_memory(profile: Profile, memory: Memory, points: int = POINTS) -> dict[int, MemoryByKind]:
    """Memory by kind, by device number, for devices whose events have addresses.

    Args:
        profile: one trace.
        memory: its `memory_of`.
        points: most points, approximately.
    """
    events = memory_events(profile)
    real = events.take(~events.failed & (events.bytes != 0))
    end, unseen = ends_of_life(real)
    kind = _kinds(profile, real, end)
    found = {}
    for device in memory.by_device:
        here = np.flatnonzero(real.device == device.device)
        if (real.address[here] != 0).all():
            found[device.device] = _curves(real, end, unseen, kind, here, device.start_bytes, points)
    return found


def kinds_of_allocations(profile: Profile) -> dict[int, MemoryKind]:
    """The kind of each allocation, by its `[memory]` row."""
    events = memory_events(profile)
    real = events.take(~events.failed & (events.bytes != 0))
    kind = _kinds(profile, real, ends_of_life(real)[0])
    made = real.bytes > 0
    return {row: MEMORY_KINDS[number] for row, number in zip(real.row[made].tolist(), kind[made].tolist(), strict=True)}


def _curves(  # noqa: PLR0913, PLR0917 - one column each
    events: MemoryEvents, end: Rows, unseen: Mask, kind: Rows, here: Rows, start_bytes: int, points: int
) -> MemoryByKind:
    position = np.full(len(events), ABSENT, np.int64)
    position[here] = np.arange(len(here))
    size = events.bytes[here]
    change = np.zeros((len(MEMORY_KINDS), len(here)), np.int64)
    made = np.flatnonzero(size > 0)
    change[kind[here[made]], made] += size[made]
    ended = made[end[here[made]] != ABSENT]
    np.subtract.at(change, (kind[here[ended]], position[end[here[ended]]]), size[ended])
    change[EARLIER] += np.where(unseen[here], size, 0)
    totals = events.allocated[here]
    allocated = totals if (totals != ABSENT).all() else start_bytes + np.cumsum(size)
    values = np.zeros((len(MEMORY_KINDS), len(here) + 1), np.int64)
    np.cumsum(change, axis=1, out=values[:, 1:])
    values[EARLIER] += start_bytes
    allocated = np.append(start_bytes, allocated)
    values[_UNKNOWN] += allocated - values.sum(axis=0)
    time_ns = np.append(0, events.time_ns[here])
    kept = thinned(time_ns, [allocated, *values], points)
    return MemoryByKind(time_ns[kept], values[:, kept], int(np.argmax(allocated[kept])))


def _kinds(profile: Profile, events: MemoryEvents, end: Rows) -> Rows:
    """The kind of each event in `MEMORY_KINDS`; meaningless for frees."""
    table = profile.table
    host = table.is_category(HOST_TREE)
    backward = _joined(profile.covered(np.flatnonzero(host & table.is_named(BACKWARD.search))))
    steps = profile.covered(profile.matching(r"^Optimizer\.step", Category.ANNOTATION))
    made_ns = events.time_ns
    freed_ns = np.where(end == ABSENT, _NEVER, events.time_ns[end])
    next_backward = _next(backward.starts, made_ns)
    step_after = _next(steps.ends, next_backward)
    kind = np.full(len(events), _UNKNOWN, np.int64)
    kind[freed_ns <= next_backward] = TEMPORARY
    kind[(freed_ns == _NEVER) & (next_backward == _NEVER)] = _UNKNOWN
    used_later = (freed_ns > next_backward) & (next_backward != _NEVER)
    kind[used_later & ((freed_ns <= step_after) | (step_after == _NEVER))] = ACTIVATION
    kind[_is_input(profile, events)] = _INPUT
    for phase, kept in ((backward, GRADIENT), (steps, STATE)):
        inside = phase.containing(made_ns)
        ends_ns = _next(phase.ends, made_ns)
        kind[inside] = np.where(freed_ns[inside] > ends_ns[inside], kept, TEMPORARY)
    return kind


def _joined(phase: Intervals) -> Intervals:
    """The phase without its short pauses."""
    longer = Intervals.union(phase.starts, phase.ends + PAUSE_NS)
    return Intervals(longer.starts, longer.ends - PAUSE_NS)


def _next(times: Times, after: Times) -> Times:
    """The first of `times` that is later than each of `after`, `_NEVER` if there is none."""
    found: Times = np.append(times, _NEVER)[np.searchsorted(times, after, side="right")]
    return found


def _is_input(profile: Profile, events: MemoryEvents) -> Mask:
    """Mask of allocations by operators that copy from the host to a device, and by a loader while a step waits."""
    table, size = profile.table, profile.tree.size
    copies = np.flatnonzero((table.category == Category.COPY) & table.is_named(TO_DEVICE.search))
    cause = profile.launched_by[copies]
    count = np.zeros(size + 1, np.int64)
    np.add.at(count, cause[(cause != ABSENT) & (cause < size)] + 1, 1)
    before = np.cumsum(count)
    asked = asked_by(profile, events.row)
    known = np.flatnonzero(asked != ABSENT)
    found = np.zeros(len(events), np.bool_)
    rows = asked[known]
    found[known] = before[profile.tree.last_descendant[rows] + 1] > before[rows]
    loading = profile.covered(np.flatnonzero(table.is_named(LOADER_NEXT.fullmatch)))
    return found | loading.containing(events.time_ns)
