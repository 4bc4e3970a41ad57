"""Memory snapshots as `torch.cuda.memory._dump_snapshot` writes them, drawn allocation by allocation."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

MIB = 1 << 20
TORCH = "/env/lib/python3.11/site-packages/torch"
NAME = "memory_snapshot.pickle"

Stack: TypeAlias = list[dict[str, Any]]


def stack(*frames: tuple[str, int, str]) -> Stack:
    """A stack of files, lines and functions, innermost first."""
    return [{"filename": file, "line": line, "name": name} for file, line, name in frames]


TRAIN = ("/home/u/train.py", 40, "<module>")
MADE = stack((f"{TORCH}/nn/modules/linear.py", 106, "__init__"), ("/home/u/model.py", 12, "__init__"), TRAIN)
FORWARD = stack((f"{TORCH}/nn/functional.py", 200, "gelu"), ("/home/u/model.py", 21, "forward"), TRAIN)
BACKWARD: Stack = []
STEP = stack((f"{TORCH}/optim/adam.py", 180, "_init_group"), (f"{TORCH}/optim/optimizer.py", 500, "wrapper"), TRAIN)
LOADED = stack((f"{TORCH}/utils/data/_utils/pin_memory.py", 30, "pin"), TRAIN)


@dataclass
class DrawnSnapshot:
    """One device's history; each action comes a microsecond after the previous one."""

    actions: list[dict[str, Any]] = field(default_factory=list)
    alive: dict[int, tuple[int, Stack]] = field(default_factory=dict)
    reserved: int = 0
    next_address: int = 0x7F00_0000_0000

    def allocates(self, size: int, frames: Stack) -> int:
        """Allocates; returns the address."""
        at = self.next_address
        self.next_address += size
        self.alive[at] = (size, frames)
        self._does("alloc", at, size, frames)
        return at

    def frees(self, at: int) -> None:
        """Frees the allocation at this address."""
        size, _ = self.alive.pop(at)
        for action in ("free_requested", "free_completed"):
            self._does(action, at, size)

    def had(self, size: int, frames: Stack) -> int:
        """Adds an allocation from before the history; returns its address."""
        at = self.next_address
        self.next_address += size
        self.alive[at] = (size, frames)
        return at

    def reserves(self, size: int) -> None:
        """Takes a segment from the device."""
        self.reserved += size
        self._does("segment_alloc", self.next_address, size)

    def fails(self, size: int) -> None:
        """An allocation that fails because there is not enough memory."""
        self._does("oom", 0, size, FORWARD)

    def _does(self, action: str, addr: int, size: int, frames: Stack | None = None) -> None:
        time_us = 1_790_000_000_000_000 + len(self.actions)
        entry = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "frames": frames or []}
        self.actions.append(entry | {"compile_context": "N/A", "user_metadata": "", "pool_id": (0, 0)})

    def snapshot(self) -> dict[str, Any]:
        """The whole snapshot, with one segment."""
        blocks = [
            {"address": at, "size": -(-size // 512) * 512, "requested_size": size, "frames": frames}
            | {"state": "active_allocated"}
            for at, (size, frames) in self.alive.items()
        ]
        blocks.append({"address": 1, "size": 512, "requested_size": 0, "frames": [], "state": "inactive"})
        segment = {"address": 1, "total_size": self.reserved, "device": 0, "stream": 0, "blocks": blocks}
        return {
            "segments": [segment | {"segment_type": "large", "segment_pool_id": (0, 0)}],
            "device_traces": [self.actions],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "roundup": {"1": 0}},
        }


def training(steps: int = 3) -> DrawnSnapshot:
    """Two layers, Adam: 32 MiB of parameters, 24 of activations, 32 of gradients, 64 of states; and 3 from before."""
    drawn = DrawnSnapshot()
    drawn.had(3 * MIB, BACKWARD)
    drawn.reserves(256 * MIB)
    for _ in range(2):
        drawn.allocates(16 * MIB, MADE)
    states: list[int] = []
    for _ in range(steps):
        kept = [drawn.allocates(12 * MIB, FORWARD) for _ in range(2)]
        drawn.frees(drawn.allocates(MIB, FORWARD))
        gradients = []
        for saved in kept:
            passed_on = drawn.allocates(MIB, BACKWARD)
            gradients.append(drawn.allocates(16 * MIB, BACKWARD))
            drawn.frees(saved)
            drawn.frees(passed_on)
        states = states or [drawn.allocates(16 * MIB, STEP) for _ in range(4)]
        drawn.frees(drawn.allocates(MIB, STEP))
        for gradient in gradients:
            drawn.frees(gradient)
    return drawn


def write_snapshot(folder: Path, snapshot: Mapping[str, Any], name: str = NAME) -> Path:
    """Writes the snapshot as PyTorch does."""
    path = folder / name
    path.write_bytes(pickle.dumps(dict(snapshot)))
    return path
