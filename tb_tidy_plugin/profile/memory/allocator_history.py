"""Data of a memory snapshot by device: memory over time by kind, and the holders of the peak by stack.

The history of a snapshot ends when it was taken, so the memory allocated before its first action is the final memory
minus the sum of the history. Blocks that were allocated before it may still have their stacks.

The purpose of a stack follows from its frames: those of `torch.optim` are the optimizer's, those of `nn.Module`'s own
methods create parameters, and the backward pass runs in a thread without Python frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from tb_tidy_plugin.profile.memory.kinds import MEMORY_KINDS
from tb_tidy_plugin.profile.memory.usage import POINTS, thinned
from tb_tidy_plugin.trace.columns import Times
from tb_tidy_plugin.trace.memory_snapshot import Action, MemorySnapshot, SnapshotBlock, SnapshotFrame
from tb_tidy_plugin.trace.sets import united
from tb_tidy_plugin.words.vocabulary import MemoryKind

Stack: TypeAlias = tuple[SnapshotFrame, ...]
_Pass: TypeAlias = Literal["setup", "loading", "forward", "backward", "optimizer"]

MAKES_PARAMETERS = frozenset({"_apply", "load_state_dict", "reset_parameters", "register_buffer"})
KEPT: Mapping[_Pass, MemoryKind] = {"backward": "gradient", "optimizer": "optimizer_state"}


class Holder(msgspec.Struct, frozen=True):
    """Allocations of one stack and kind that are alive at the peak."""

    stack: Stack
    kind: MemoryKind
    allocations: int
    bytes: int


class AllocatorHistory(msgspec.Struct, frozen=True):
    """One device's memory, bytes; between two points the first one's value holds.

    Attributes:
        device: its index.
        time_ns: counted from the first action, thinned so that peaks stay.
        allocated_bytes, reserved_bytes: at each of them. kinds: one row per kind in `MEMORY_KINDS`, which add up.
        peak: position of the largest allocated memory. peak_reserved_bytes: the most reserved at any time.
        allocations: number of recorded allocations.
        holders: allocations alive at the peak with a stack, largest first. other_bytes: all others at the peak.
        failures: allocations that failed for lack of memory.
    """

    device: int
    time_ns: Times
    allocated_bytes: Times
    reserved_bytes: Times
    kinds: Times
    peak: int
    peak_reserved_bytes: int
    allocations: int
    holders: tuple[Holder, ...]
    other_bytes: int
    failures: int


class _Life(msgspec.Struct):
    """One allocation: positions of its actions, `made` -1 for before the first, `freed` None for never."""

    bytes: int
    stack: Stack
    made: int
    freed: int | None = None
    kind: MemoryKind = "unknown"


class _Lives(msgspec.Struct):
    all: list[_Life] = msgspec.field(default_factory=list)
    unseen_bytes: dict[int, int] = msgspec.field(default_factory=dict)
    """Bytes allocated before the first action and without a stack, by the position of their free."""


def allocator_histories(snapshot: MemorySnapshot, points: int = POINTS) -> Iterator[AllocatorHistory]:
    """One history per device that has memory.

    Args:
        snapshot: of one process.
        points: most points of a curve, approximately.
    """
    devices = {each.device for each in snapshot.segments}
    devices |= {at for at, actions in enumerate(snapshot.device_traces) if actions}
    for device in sorted(devices):
        actions = snapshot.device_traces[device] if device < len(snapshot.device_traces) else []
        segments = [each for each in snapshot.segments if each.device == device]
        blocks = [block for segment in segments for block in segment.blocks if block.is_allocated]
        reserved = sum(segment.total_size for segment in segments)
        yield _history(device, actions, blocks, reserved, points)


def _history(
    device: int, actions: Sequence[Action], blocks: Sequence[SnapshotBlock], reserved: int, points: int
) -> AllocatorHistory:
    lives = _lives_of(actions, blocks)
    _tell_kinds(lives.all, _passes_of(actions))
    change = np.zeros((len(MEMORY_KINDS), len(actions) + 1), np.int64)
    for life in lives.all:
        row = MEMORY_KINDS.index(life.kind)
        change[row, life.made + 1] += life.bytes
        if life.freed is not None:
            change[row, life.freed + 1] -= life.bytes
    earlier = MEMORY_KINDS.index("earlier")
    for at, size in lives.unseen_bytes.items():
        change[earlier, 0] += size
        change[earlier, at + 1] -= size
    kinds = np.cumsum(change, axis=1)
    allocated = kinds.sum(axis=0)
    held = _reserved(actions, reserved)
    first_us = actions[0].time_us if actions else 0
    times = np.array([0, *(max(each.time_us - first_us, 0) * 1000 for each in actions)], np.int64)
    times = np.maximum.accumulate(times)
    peak = int(allocated.argmax())
    kept = united(thinned(times, [allocated, held, *kinds], points), np.array([peak]))
    holders = _holders([life for life in lives.all if life.made < peak and (life.freed is None or life.freed >= peak)])
    return AllocatorHistory(
        device=device,
        time_ns=times[kept],
        allocated_bytes=allocated[kept],
        reserved_bytes=held[kept],
        kinds=kinds[:, kept],
        peak=int(np.searchsorted(kept, peak)),
        peak_reserved_bytes=int(held.max()),
        allocations=sum(each.action == "alloc" for each in actions),
        holders=holders,
        other_bytes=int(allocated[peak]) - sum(each.bytes for each in holders),
        failures=sum(each.action == "oom" for each in actions),
    )


def _lives_of(actions: Sequence[Action], blocks: Sequence[SnapshotBlock]) -> _Lives:
    """All allocations. If an address is allocated twice, an unseen free lies in between."""
    lives, alive = _Lives(), dict[int, _Life]()
    for at, each in enumerate(actions):
        if each.action == "alloc":
            if each.addr in alive:
                alive[each.addr].freed = at
            alive[each.addr] = _Life(each.size, tuple(each.frames), at)
            lives.all.append(alive[each.addr])
        elif each.action == "free_requested":
            life = alive.pop(each.addr, None)
            if life is None:
                lives.unseen_bytes[at] = each.size
            else:
                life.freed = at
    for block in blocks:
        if block.address not in alive:
            lives.all.append(_Life(block.bytes, tuple(block.frames), -1, None, "earlier"))
    return lives


def _passes_of(actions: Sequence[Action]) -> Sequence[_Pass | None]:
    """The pass of each allocation; None for other actions, and for all actions without Python stacks."""
    has_python = any(_python(each.frames) for each in actions)
    return [_pass_of(each.frames) if has_python and each.action == "alloc" else None for each in actions]


def _tell_kinds(lives: Sequence[_Life], passes: Sequence[_Pass | None]) -> None:
    """Sets the kind of each allocation in the history, by its pass and by whether it outlives that."""
    ends = _ends_of_passes(passes)
    backward = np.array([at for at, each in enumerate(passes) if each == "backward"], np.int64)
    for life in lives:
        made_in = passes[life.made] if life.made >= 0 else _pass_of(life.stack) if _python(life.stack) else None
        freed = len(passes) if life.freed is None else life.freed
        if made_in == "setup":
            life.kind = "parameter"
        elif made_in == "loading":
            life.kind = "input"
        elif life.made < 0:
            life.kind = KEPT.get(made_in, "earlier") if made_in else "earlier"
        elif made_in is not None and made_in in KEPT:
            life.kind = KEPT[made_in] if freed > ends[life.made] else "temporary"
        else:
            after = backward[np.searchsorted(backward, life.made) :]
            uses = bool(len(after)) and freed > int(after[0])
            life.kind = "activation" if uses else "temporary" if life.freed is not None else "unknown"


def _ends_of_passes(passes: Sequence[_Pass | None]) -> Sequence[int]:
    """End of the pass of each action: the first allocation of another pass."""
    ends = [len(passes)] * len(passes)
    of, begins, end = None, len(passes), len(passes)
    for at in range(len(passes) - 1, -1, -1):
        if (here := passes[at]) is not None:
            if here != of:
                of, end = here, begins
            begins = at
        ends[at] = end
    return ends


def _python(stack: Sequence[SnapshotFrame]) -> list[SnapshotFrame]:
    return [frame for frame in stack if frame.filename.endswith(".py")]


def _pass_of(stack: Sequence[SnapshotFrame]) -> _Pass:
    """The pass in which a stack allocates. Autograd's own threads have no Python frames."""
    python = _python(stack)
    if not python:
        return "backward"
    for frame in python:
        file = frame.filename.replace("\\", "/")
        if "/torch/optim/" in file:
            return "optimizer"
        if "/torch/utils/data/" in file:
            return "loading"
        if "/torch/autograd/" in file and frame.name in {"backward", "_engine_run_backward", "grad"}:
            return "backward"
        if "/torch/nn/" in file and (frame.name in MAKES_PARAMETERS or frame.name == "__init__"):
            return "setup"
    return "forward"


def _reserved(actions: Sequence[Action], in_the_end: int) -> Times:
    sign = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    change = np.array([0, *(sign.get(each.action, 0) * each.size for each in actions)], np.int64)
    held: Times = np.cumsum(change)
    at_least: Times = np.maximum(held + in_the_end - held[-1], 0)
    return at_least


def _holders(alive: Sequence[_Life]) -> tuple[Holder, ...]:
    sizes, counts = Counter[tuple[Stack, MemoryKind]](), Counter[tuple[Stack, MemoryKind]]()
    for life in alive:
        if life.stack:
            sizes[life.stack, life.kind] += life.bytes
            counts[life.stack, life.kind] += 1
    return tuple(Holder(stack, kind, counts[stack, kind], size) for (stack, kind), size in sizes.most_common())
