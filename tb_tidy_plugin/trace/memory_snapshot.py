"""The memory snapshot beside a trace, as `torch.cuda.memory._dump_snapshot` writes it: blocks, and the history.

Its format is in https://github.com/pytorch/pytorch/blob/v2.13.0/torch/cuda/memory.py (`_snapshot`); unknown fields are
ignored.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec.structs import replace

from tb_tidy_plugin.system.allowance import has_read
from tb_tidy_plugin.system.decoders import convert
from tb_tidy_plugin.trace.columns import EventTable
from tb_tidy_plugin.trace.limits import MOST_DEVICES
from tb_tidy_plugin.trace.names import snapshots_beside
from tb_tidy_plugin.trace.plain_pickle import plain_object
from tb_tidy_plugin.trace.remote import AnyPath, is_file, size_of
from tb_tidy_plugin.trace.side_file import refuse_link_away
from tb_tidy_plugin.words.errors import TraceError, UnreadError

MOST_SNAPSHOT_BYTES = 256 << 20
_WRITE_AGAIN = "Write it again with `torch.cuda.memory._dump_snapshot`, with fewer `max_entries`, or delete it."

_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
Address: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class SnapshotFrame(msgspec.Struct, frozen=True):
    """One call of a stack, of Python or C++."""

    filename: str = ""
    line: int = 0
    name: str = ""


class SnapshotBlock(msgspec.Struct, frozen=True):
    """A part of a segment; `frames` is its allocation's stack, innermost first, empty if no history was recorded."""

    state: str
    size: _Size
    address: Address = 0
    requested_size: _Size | None = None
    frames: list[SnapshotFrame] = []

    @property
    def is_allocated(self) -> bool:
        """True if a tensor uses it."""
        return self.state == "active_allocated"

    @property
    def bytes(self) -> int:
        """The requested size, as actions count it."""
        return self.size if self.requested_size is None else self.requested_size


class Segment(msgspec.Struct, frozen=True):
    """Memory that the allocator holds."""

    total_size: _Size
    address: Address = 0
    device: Annotated[int, msgspec.Meta(ge=0, lt=MOST_DEVICES)] = 0
    blocks: list[SnapshotBlock] = []


class Action(msgspec.Struct, frozen=True):
    """The allocator's action: `alloc`, `free_requested`, `segment_alloc`, `oom` and others; `time_us` in Unix time."""

    action: str
    size: _Size = 0
    addr: Address = 0
    time_us: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)] = 0
    frames: list[SnapshotFrame] = []


class MemorySnapshot(msgspec.Struct, frozen=True):
    """Memory of a process's allocator at the time of the snapshot, and its earlier actions by device, oldest first."""

    segments: list[Segment]
    device_traces: Annotated[list[list[Action]], msgspec.Meta(max_length=MOST_DEVICES)] = []


def with_memory_snapshot(table: EventTable, trace: AnyPath) -> EventTable:
    """`table` with the place of the snapshot beside `trace`, which is read only when needed."""
    path = memory_snapshot_of(trace)
    if path is None:
        return table
    try:
        refuse_link_away(path, trace)
    except TraceError as problem:
        return table.not_using(path.name, problem)
    return replace(table, memory_snapshot=path)


def memory_snapshot_of(trace: AnyPath) -> AnyPath | None:
    """The snapshot beside `trace`, None if there is none."""
    return next((path for path in snapshots_beside(trace) if is_file(path)), None)


def read_memory_snapshot(path: AnyPath) -> MemorySnapshot:
    """The snapshot at `path`, read without executing any of it.

    Raises:
        UnreadError: it cannot be read.
        TraceError: it is not a memory snapshot, or too large for one.
    """
    try:
        if size_of(path) > MOST_SNAPSHOT_BYTES:
            raise TraceError(f"It is larger than {MOST_SNAPSHOT_BYTES >> 20} MiB.", _WRITE_AGAIN)
        data = path.read_bytes()
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise UnreadError(f"It cannot be read: {reason}.", "Check the path and its permissions.") from None
    has_read(len(data))
    try:
        return convert(plain_object(data), MemorySnapshot)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise TraceError(f"It does not match the format of memory snapshots: {problem}.", _WRITE_AGAIN) from None
