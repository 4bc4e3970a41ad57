"""Memory as the report shows it: each device's curve, the holders of its peak, and what steps keep."""

from __future__ import annotations

import numpy as np
from msgspec.structs import asdict

from tb_tidy_plugin.profile.memory.allocations import HOST, Allocations, MemoryDevice, asked_by
from tb_tidy_plugin.profile.memory.allocator_history import AllocatorHistory, Holder, allocator_histories
from tb_tidy_plugin.profile.memory.kinds import MEMORY_KINDS, MemoryByKind, kinds_of_allocations, kinds_of_memory
from tb_tidy_plugin.profile.memory.usage import DeviceMemory, Memory, StepMemory, memory_of
from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.figures import DeviceMemoryRow, MemoryHolder, MemoryKindCurve, MemoryStep
from tb_tidy_plugin.sources.frames import frame_of
from tb_tidy_plugin.sources.places import Places
from tb_tidy_plugin.trace.columns import ABSENT
from tb_tidy_plugin.trace.memory_snapshot import SnapshotFrame, read_memory_snapshot
from tb_tidy_plugin.trace.strings import NumberTable
from tb_tidy_plugin.words.errors import TraceError

MOST_HOLDERS, _MOST_FRAMES = 50, 30
LONGEST_FRAME = 300


def memory_rows(profile: Profile, places: Places) -> list[DeviceMemoryRow]:
    """One row per device, the CPU first; empty if no memory was recorded."""
    memory = memory_of(profile)
    if memory is None:
        return []
    kinds = kinds_of_memory(profile, memory)
    return [_row(profile, places, memory, device, kinds.get(device.device)) for device in memory.by_device]


def snapshot_rows(profile: Profile) -> tuple[list[DeviceMemoryRow], str | None]:
    """One row per device of the memory snapshot beside the trace, and the reason if that snapshot gives none."""
    path = profile.table.memory_snapshot
    if path is None:
        return [], None
    try:
        return [_history_row(each) for each in allocator_histories(read_memory_snapshot(path))], None
    except TraceError as problem:
        return [], f"The memory snapshot `{path.name}` is not used. {problem.error} {problem.advice}"


def _history_row(history: AllocatorHistory) -> DeviceMemoryRow:
    times, peak = history.time_ns.tolist(), history.peak
    return DeviceMemoryRow(
        device=f"cuda:{history.device}, memory snapshot",
        basis="snapshot",
        time_ns=times,
        allocated_bytes=history.allocated_bytes.tolist(),
        reserved_bytes=history.reserved_bytes.tolist(),
        peak_ns=times[peak],
        peak_bytes=int(history.allocated_bytes[peak]),
        peak_reserved_bytes=history.peak_reserved_bytes,
        other_bytes=history.other_bytes,
        allocations=history.allocations,
        holders=[_stack_holder(each) for each in history.holders[:MOST_HOLDERS]],
        steps=[],
        kinds_ns=times,
        kinds=_kind_curves(MemoryByKind(history.time_ns, history.kinds, peak)),
        failures=history.failures,
    )


def _stack_holder(holder: Holder) -> MemoryHolder:
    """The holder, with the user's own frame as its place and the innermost frame as the one that allocated."""
    frames = [frame_of(each.filename, each.line, each.name) for each in holder.stack]
    own = next((each for each in frames if each is not None and each.own_code and each.file.endswith(".py")), None)
    return MemoryHolder(
        operator=_frame_text(holder.stack[0]),
        file=own.file if own else "",
        line=own.line if own else None,
        function=own.function if own else "",
        allocations=holder.allocations,
        bytes=holder.bytes,
        kind=holder.kind,
        stack=[_frame_text(each) for each in holder.stack[:_MOST_FRAMES]],
    )


def _frame_text(frame: SnapshotFrame) -> str:
    file = frame.filename.replace("\\", "/").rpartition("/")[2]
    return f"{frame.name} ({file}:{frame.line})"[:LONGEST_FRAME] if file else frame.name[:LONGEST_FRAME]


def _row(
    profile: Profile, places: Places, memory: Memory, device: DeviceMemory, kinds: MemoryByKind | None
) -> DeviceMemoryRow:
    peak, curve = device.peak, device.curve
    return DeviceMemoryRow(
        device=device_text(memory.devices[device.device]),
        basis=device.basis,
        time_ns=list(curve.time_ns),
        allocated_bytes=list(curve.allocated_bytes),
        reserved_bytes=None if curve.reserved_bytes is None else list(curve.reserved_bytes),
        peak_ns=peak.time_ns,
        peak_bytes=peak.allocated_bytes,
        peak_reserved_bytes=device.peak_reserved_bytes,
        other_bytes=peak.other_bytes,
        allocations=device.allocations,
        holders=[] if peak.alive is None else holders_of(profile, places, peak.alive)[:MOST_HOLDERS],
        steps=[_step(profile, step) for step in memory.steps if step.device == device.device],
        kinds_ns=[] if kinds is None else kinds.time_ns.tolist(),
        kinds=[] if kinds is None else _kind_curves(kinds),
        failures=sum(each.device == device.device for each in memory.out_of_memory),
    )


def _kind_curves(kinds: MemoryByKind) -> list[MemoryKindCurve]:
    """The kinds that ever hold anything."""
    return [
        MemoryKindCurve(kind=kind, bytes=values.tolist(), peak_bytes=int(values[kinds.peak]))
        for kind, values in zip(MEMORY_KINDS, kinds.bytes, strict=True)
        if values.any()
    ]


def device_text(device: MemoryDevice) -> str:
    """`cpu`, `cuda:0`; without a number if none was recorded."""
    return device.kind if device.kind == HOST or device.index == ABSENT else f"{device.kind}:{device.index}"


def holders_of(profile: Profile, places: Places, allocations: Allocations) -> list[MemoryHolder]:
    """Allocations by operator, place of the operator's call, and kind, most bytes first."""
    operators = NumberTable[str]()
    causes = asked_by(profile, allocations.row).tolist()
    names = operators.numbers((profile.name(row) if row != ABSENT else "" for row in causes), len(causes))
    kind_of = kinds_of_allocations(profile)
    kinds = [MEMORY_KINDS.index(kind_of[row]) for row in allocations.row.tolist()]
    pairs = np.stack([names.astype(np.int64), places.number[allocations.row], np.array(kinds, np.int64)])
    both, number = np.unique(pairs, axis=1, return_inverse=True)
    size = np.zeros(both.shape[1], np.int64)
    np.add.at(size, number.reshape(-1), allocations.bytes)
    count = np.bincount(number.reshape(-1), minlength=both.shape[1])
    order = np.argsort(-size, kind="stable")
    columns = (column[order].tolist() for column in (*both, count, size))
    return [_holder(places, operators.values()[name], *values) for name, *values in zip(*columns, strict=True)]


def _holder(places: Places, operator: str, place: int, kind: int, count: int, size: int) -> MemoryHolder:
    frame = places.frame(place)
    return MemoryHolder(
        operator=operator,
        file=frame.file if frame else "",
        line=frame.line if frame else None,
        function=frame.function if frame else "",
        allocations=count,
        bytes=size,
        kind=MEMORY_KINDS[kind],
    )


def _step(profile: Profile, step: StepMemory) -> MemoryStep:
    fields = asdict(step) | {"step": profile.steps.items[step.step].name}
    return MemoryStep(**{name: fields[name] for name in MemoryStep.__struct_fields__})
